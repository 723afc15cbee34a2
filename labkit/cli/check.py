"""Defines the options and the output of `labkit check`; `labkit.teach.exercises` does the checks."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from labkit.cli.common import Json
from labkit.core.errors import InvalidInput
from labkit.core.words import columns


def check(
    notebooks: Annotated[list[Path], typer.Argument(help="Notebooks of the lab, or folders that contain them.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Check only this exercise, such as 05-recovery; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Check each answer in saved notebooks on its own, as `labkit grade` does, but only on the public test data.

    Exit 0 if every exercise passes, 1 if one fails or is not attempted, 64 if a notebook cannot be read (labkit still
    checks the others). The notebooks' code runs with your rights.
    """
    from labkit.host.processes.own_python import check_python_path
    from labkit.teach.exercises.moved import sentence_on
    from labkit.teach.exercises.registry import EXERCISES, find
    from labkit.teach.exercises.standalone import checked

    check_python_path()
    for sentence in filter(None, map(sentence_on, only or ())):
        print(sentence, file=sys.stderr)
    wanted = {find(name).name for name in only or EXERCISES}
    by_notebook, refused = {}, []
    for path in _files(notebooks):
        try:
            by_notebook[str(path)] = [each for each in checked(path) if each.name in wanted]
        except InvalidInput as error:
            refused.append(str(error))
    everything = [each for some in by_notebook.values() for each in some]
    if not everything and not refused:
        raise InvalidInput(
            f"--only {' '.join(only or ())}: none of these notebooks has this exercise; name the notebook that has it."
        )
    if as_json:
        print(msgspec.json.encode(by_notebook).decode())
    elif everything:
        for name, results in by_notebook.items():
            rows = [(each.name, each.state, each.message) for each in results]
            print(f"{name}\n{columns(rows)}")
        passed = sum(each.is_passed for each in everything)
        print(f"{passed} of {len(everything)} exercises pass.")
    if refused:
        raise InvalidInput("\n".join(refused))
    return 0 if all(each.is_passed for each in everything) else 1


def _files(paths: list[Path]) -> list[Path]:
    """Return the files to check: each file in `paths`, and for each folder the notebooks in it that have exercises.

    Raises `InvalidInput` for a folder that contains no such notebook.
    """
    from labkit.teach.exercises.registry import assignments

    asking = {exercise.notebook for exercise in assignments().values()}
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = [each for each in sorted(path.rglob("*.ipynb")) if each.stem in asking]
        if not inside:
            raise InvalidInput(
                f"{path}: this folder contains no notebook with exercises; name another folder or a notebook."
            )
        files += inside
    return files
