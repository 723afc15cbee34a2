"""Defines the options and the output of `labkit course`; `labkit.teach.course` writes the files."""

from pathlib import Path
from typing import Annotated

import typer

from labkit import __version__
from labkit.core.errors import InvalidInput
from labkit.core.words import columns


def course(
    folder: Annotated[Path | None, typer.Argument(help="A new folder.")] = None,
    package: Annotated[
        str,
        typer.Option(
            help="What pip installs for the course's users: a version of labkit, a wheel in the folder, or git+https://..."
        ),
    ] = f"labkit=={__version__}",
    as_list: Annotated[
        bool, typer.Option("--list", help="Only list the notebooks, each with its question and what to read before.")
    ] = False,
) -> int:
    """Write the course into a folder: notebooks, inputs, a page for learners, files for Binder and devcontainers.

    An installed labkit suffices; no checkout of its repository is needed. The folder contains no solution; `labkit lab
    FOLDER` opens it.
    """
    from labkit.teach.course import listed, write

    if as_list:
        if folder is not None:
            raise InvalidInput(
                f"labkit course: --list writes nothing, so it takes no folder; leave out --list or {folder}."
            )
        rows = [(name, question, ", ".join(needs)) for name, question, needs in listed()]
        print(columns([("notebook", "question", "read before"), *rows]))
        return 0
    if folder is None:
        raise InvalidInput(
            "labkit course: it needs a folder to write to; name a new one, or list the notebooks with --list."
        )
    written = write(folder, package)
    print(f"{folder}: {len(written)} notebooks; labkit lab {folder} opens the first.")
    return 0
