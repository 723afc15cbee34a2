"""Defines the options that several verbs share."""

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from labkit import __version__
from labkit.core.errors import MissingExtra

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Out = Annotated[Path | None, typer.Option("--out", help="The folder to write to; it must not exist yet.")]


def need_grader(command: str) -> None:
    """Raise `MissingExtra` unless the grader is installed, the separate package with which instructors grade."""
    if importlib.util.find_spec("labkit.grading") is None:
        raise MissingExtra(
            f"{command} needs the grader, which is not installed: pip install labkit-grading=={__version__}."
        )
