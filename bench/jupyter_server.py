"""Start and stop a JupyterLab for a test or a measurement, on a free port and with its own folders.

It has the settings of a learner, but its state (tabs, signatures, history) is elsewhere, and its kernels listen at Unix
sockets: two kernels that start at the same time sometimes choose the same TCP port, and then one of them dies. It ends
with the process that asked for it, even after SIGKILL.
"""

import os
import secrets
import signal
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from labkit.core.errors import ServiceUnavailable
from labkit.host.durable import own_folder
from labkit.host.processes.sessions import session_members
from labkit.host.processes.start_server import ServerStarted
from labkit.host.processes.tether import tethered
from labkit.host.servers.ports import free_port
from labkit.teach.jupyter import WORKSPACE, command, environment

PATIENCE = 180.0
"""The seconds within which the server must answer."""

GRACE = 20.0
"""The seconds that the server has to end its kernels and itself."""


class Server(NamedTuple):
    """A running JupyterLab: its port, its folder of notebooks, the token for requests, and its log."""

    port: int
    folder: Path
    token: str
    log: Path

    def page(self, notebook: str) -> str:
        """Return the address that opens a notebook and resets the open tabs."""
        return f"http://127.0.0.1:{self.port}/lab/workspaces/{WORKSPACE}/tree/{notebook}?token={self.token}&reset"

    def api(self, path: str) -> str:
        """Return the address of a path in the server's REST API."""
        return f"http://127.0.0.1:{self.port}/api/{path}?token={self.token}"

    def said(self) -> str:
        """Return the end of the server's log, as a part of a message about a failure."""
        return f"the server's log ends with: {self.log.read_text(encoding='utf-8', errors='replace')[-2000:]}"


@contextmanager
def serving(folder: Path, home: Path) -> Iterator[Server]:
    """Run JupyterLab on a folder within a `with` block; `home` holds its state. Raises `ServiceUnavailable`."""
    server = Server(free_port(), folder, secrets.token_hex(16), home / "server.log")
    home.mkdir(parents=True, exist_ok=True)
    words = command(folder, port=server.port, browser=False)
    words += [f"--IdentityProvider.token={server.token}", "--LabApp.expose_app_in_browser=True"]
    words += ["--KernelManager.transport=ipc"]
    starter = ("labkit.host.processes.start_server", "tethered", str(server.log))
    # The path of a Unix socket has at most 107 bytes.
    with (
        own_folder(Path(tempfile.gettempdir()), "labkit-sockets-") as sockets,
        tethered(ServerStarted, *starter, *words, environment=environment(_apart(home, sockets))) as started,
    ):
        session = started.pid
        try:
            _wait(server, session)
            yield server
        finally:
            _stop(session)


def _apart(home: Path, sockets: Path) -> dict[str, str]:
    """Return environment variables that put Jupyter's sockets into a folder, and its other files below `home`."""
    names = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    places = {name: str(home / place) for name, place in names.items()}
    return {**os.environ, **places, "JUPYTER_RUNTIME_DIR": str(sockets)}


def _wait(server: Server, session: int) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and session_members(session):
        try:
            urllib.request.urlopen(server.api("status"), timeout=1).close()  # noqa: S310  # our own server
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise ServiceUnavailable(f"JupyterLab did not answer on port {server.port}; {server.said()}")


def _stop(session: int) -> None:
    """Send SIGTERM to the server, and wait at most `GRACE` seconds until it and its kernels have ended.

    `serving` kills the processes that are left.
    """
    with suppress(ProcessLookupError):
        os.kill(session, signal.SIGTERM)
    end = time.monotonic() + GRACE
    while session_members(session) and time.monotonic() < end:
        time.sleep(0.02)
