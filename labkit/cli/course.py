"""`labkit course`: options and printing only; what is written is in `labkit.teach.course`."""

from pathlib import Path
from typing import Annotated

import typer

from labkit import __version__


def course(
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    package: Annotated[
        str,
        typer.Option(
            help="What pip installs where the course is used: a version, a wheel in the folder, or git+https://..."
        ),
    ] = f"labkit=={__version__}",
) -> int:
    """Write the course into a folder: notebooks, inputs, a page for learners, and files for Binder, devcontainers, GitHub.

    Needs no checkout. It holds no solution; `labkit lab FOLDER` opens it.
    """
    from labkit.teach.course import write

    written = write(folder, package)
    print(f"{folder}: {len(written)} notebooks; labkit lab {folder} opens the first.")
    return 0
