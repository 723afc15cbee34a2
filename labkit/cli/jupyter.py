"""`labkit lab`: gives its place to JupyterLab. Which settings that takes is `labkit.teach.jupyter`."""

import importlib.util
import os
from pathlib import Path
from typing import NoReturn

from labkit.core.errors import ServiceUnavailable
from labkit.teach.jupyter import (
    check_port,
    command,
    environment,
    first_notebook,
    notebook_folder,
)


def run_lab(folder: Path | None, port: int | None, *, browser: bool) -> NoReturn:
    """Becomes JupyterLab. Raises `InvalidInput` or `ServiceUnavailable` before anything is started."""
    place = notebook_folder(folder)
    if port is not None:
        check_port(port)
    if importlib.util.find_spec("jupyterlab") is None:
        raise ServiceUnavailable(
            "JupyterLab is missing: run `make lab`, which installs the locked version."
        )
    print(
        f"JupyterLab opens {place / first_notebook(place)}; Ctrl-C ends it.", flush=True
    )
    words = command(place, port=port, browser=browser)
    os.execve(words[0], words, environment())  # noqa: S606  # no shell: the same process goes on as JupyterLab
