"""Start JupyterLab with the lab's settings: it opens the first notebook, uses one kernel, and contacts no other host.

The settings are in the folders `config` and `data` next to this module. JupyterLab finds them through its two search
paths, so an installed package and a checkout behave alike, and the user's own Jupyter folders do not change.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.host.processes.own_python import own_python

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[2]
WORKSPACE = "labkit"
"""The name of a separate JupyterLab workspace, so that tabs of other projects do not appear."""
SEARCHED = {"JUPYTER_CONFIG_PATH": HERE / "config", "JUPYTER_PATH": HERE / "data"}
"""The folders that Jupyter searches first, by environment variable."""


def notebook_folder(named: Path | None = None) -> Path:
    """Return the folder with the notebooks: `named` or its subfolder `notebooks`.

    Without `named`, it is the first of these folders that contains a notebook: `./notebooks`, the current folder, and
    `notebooks` in the checkout of labkit's repository. Raises `InvalidInput` if there is no notebook.
    """
    places = [named, named / "notebooks"] if named else [Path("notebooks"), Path(), CHECKOUT / "notebooks"]
    for place in places:
        if next(place.glob("*.ipynb"), None) is not None:
            return place.absolute()
    problem = f"{named}: there is no notebook in this folder" if named else "there is no folder with notebooks here"
    raise InvalidInput(
        f"{problem}; name the folder that contains 00_start.ipynb, or create one with `labkit course FOLDER`."
    )


def first_notebook(folder: Path) -> str:
    """Return the file name of the folder's first notebook in alphabetical order."""
    return min(path.name for path in folder.glob("*.ipynb"))


def check_port(port: int) -> None:
    """Raise `InvalidInput` if the TCP port is out of range or in use."""
    if not 1 <= port <= 65535:
        raise InvalidInput(f"--port {port}: choose 1 to 65535.")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidInput(
                f"--port {port}: {reason}; stop the program that uses this port, or leave --port out, so that "
                "labkit finds a free port."
            ) from None


def command(folder: Path, *, port: int | None = None, browser: bool = True) -> list[str]:
    """Return the command line that starts JupyterLab on a folder; without `port`, on 8888 or the next free one."""
    page = f"/lab/workspaces/{WORKSPACE}/tree/{first_notebook(folder)}"
    words = own_python("-m", "jupyterlab", f"--ServerApp.root_dir={folder}", f"--LabApp.default_url={page}")
    words += ["--ServerApp.ip=127.0.0.1", "--ServerApp.log_level=WARN"]
    if port is not None:
        words += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        words.append("--no-browser")
    if os.geteuid() == 0:  # as in a container; without this option, Jupyter refuses to run as root
        words.append("--allow-root")
    return words


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return environment variables for JupyterLab, so that it searches labkit's folders of settings first.

    The result also contains `variables` or, without this argument, the environment variables of this process.
    """
    merged = dict(os.environ if variables is None else variables)
    for variable, place in SEARCHED.items():
        merged[variable] = os.pathsep.join(filter(None, [str(place), merged.get(variable)]))
    return merged
