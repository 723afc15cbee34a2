"""Defines the options and the output of `labkit release`; `labkit.grading`, a separate distribution, does the work."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from labkit.cli.common import need_grader
from labkit.core.errors import InvalidInput


def release(
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    instructor: Annotated[
        bool, typer.Option("--instructor", help="Write the notebooks with solutions in place of the stubs.")
    ] = False,
    notebook: Annotated[
        list[str] | None, typer.Option(help="A notebook of the assignment, such as 05; may be repeated.")
    ] = None,
    title: Annotated[str, typer.Option(help="The assignment's title.")] = "",
    deadline: Annotated[
        str, typer.Option(help="When the assignment must be handed in, for example 2027-01-31T18:00.")
    ] = "",
) -> int:
    """Create the learners' copy of the lab: no solutions, no hidden variants, no grader.

    With --notebook it also contains assignment.toml, a list of the exercises that count, for `labkit grade --rules`.
    """
    need_grader("labkit release")
    from labkit.grading import assignment
    from labkit.grading.course import load
    from labkit.grading.release import release as make

    if (title or deadline) and not notebook:
        raise InvalidInput(
            "--title and --deadline only apply to an assignment; name the notebooks of the assignment with --notebook."
        )
    course = load(None)
    wanted = assignment.plan(notebook, course, title, deadline) if notebook else None
    notebooks = make(folder, instructor=instructor)
    if wanted is not None:
        print(f"{assignment.write(folder, wanted, course)}: the exercises that count.")
        if note := assignment.note_on(wanted, datetime.now().astimezone()):
            print(note, file=sys.stderr)
    audience = "an instructor" if instructor else "learners"
    print(f"{folder}: the lab for {audience}, with {len(notebooks)} notebooks.")
    return 0
