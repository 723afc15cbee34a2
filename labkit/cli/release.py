"""`labkit release`: options and printing only; what is done is in `labkit.grading`, a distribution of its own."""

from pathlib import Path
from typing import Annotated

import typer

from labkit.cli.common import need_grader


def release(
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    instructor: Annotated[
        bool, typer.Option("--instructor", help="Write the notebooks with solutions in place of the stubs.")
    ] = False,
) -> int:
    """Create the learners' copy of the lab: no solutions, no hidden variants, no grader."""
    need_grader("labkit release")
    from labkit.grading.release import release as make

    notebooks = make(folder, instructor=instructor)
    audience = "an instructor" if instructor else "learners"
    print(f"{folder}: the lab for {audience}, with {len(notebooks)} notebooks.")
    return 0
