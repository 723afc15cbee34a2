"""Defines `labkit lab`, which replaces this process by JupyterLab, with the settings of `labkit.teach.jupyter`."""

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from labkit.core.extras import require
from labkit.teach.jupyter import check_port, command, environment, first_notebook, notebook_folder


def lab(
    folder: Annotated[
        Path | None,
        typer.Argument(help="The folder with the notebooks; default: notebooks, if it exists, else this folder."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port of JupyterLab; default: 8888, or the next free one.")
    ] = None,
    browser: Annotated[
        bool, typer.Option(help="Open a browser, or not; labkit prints the address in both cases.")
    ] = True,
) -> NoReturn:
    """Open JupyterLab on the first notebook. JupyterLab offers one kernel and sends no request to other hosts."""
    place = notebook_folder(folder)
    if port is not None:
        check_port(port)
    require("jupyterlab")
    print(f"JupyterLab opens {place / first_notebook(place)}; Ctrl-C ends it.", flush=True)
    words = command(place, port=port, browser=browser)
    os.execve(words[0], words, environment())  # noqa: S606  # no shell: the same process goes on as JupyterLab
