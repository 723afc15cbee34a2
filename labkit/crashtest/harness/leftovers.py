"""Finds what a sink leaves when its job ends: open files, connections, threads, and processes of other sessions.

Two runs must not share a driver in which the first one left a connection, a lock, a producer or a thread, because a
job that restarts in a new process would never find them.
"""

import os
import tempfile
import threading
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import psutil

from labkit.host import durable
from labkit.host.processes.sessions import Emptied, is_alive, kill_all, session_members

MARK = "LABKIT_CRASHTEST"
"""The environment variable that marks every process of a test, so that none escapes by leaving its session."""

FOLDERS = "labkit-crashtest-own-"

END_SECONDS = 5.0

_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError)


def opened(scratch: Path) -> set[str]:
    """Return the files and connections (as addresses) that the Python processes of this Unix session have open.

    Log files, files in `scratch`, and connections between processes of the session are left out.
    """
    members = [psutil.Process(pid) for pid in session_members(os.getsid(0)) if psutil.pid_exists(pid)]
    files: set[str] = set()
    connections: list[Any] = []
    own: set[object] = set()
    for process in members:
        with suppress(*_GONE):
            sockets = process.net_connections(kind="all")
            own |= {_end(each.laddr) for each in sockets}
            if "python" in process.name():
                connections += sockets
                files |= {each.path for each in process.open_files() if scratch not in Path(each.path).parents}
    peers = {str(each.raddr) for each in connections if each.raddr and _end(each.raddr) not in own}
    return peers | {path for path in files if not path.endswith(".log")}


def _end(address: Any) -> object:
    return address.port if getattr(address, "ip", "").removeprefix("::ffff:") in ("127.0.0.1", "::1") else address


def threads() -> set[threading.Thread]:
    """Return the living threads of this process, except those that Py4J and PySpark started for themselves."""
    return {thread for thread in threading.enumerate() if not _module(thread).startswith(("py4j.", "pyspark."))}


def _module(thread: threading.Thread) -> str:
    # CPython keeps a thread's function in `_target` while the thread runs; a subclass has its own `run` instead.
    return getattr(getattr(thread, "_target", None), "__module__", None) or type(thread).__module__


def marked_processes(mark: str) -> list[int]:
    """Return the sorted ids of the living processes whose environment contains `mark`, the id of a test."""
    pids = []
    for process in psutil.process_iter():
        with suppress(*_GONE):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                pids.append(process.pid)
    return sorted(pids)


def end(pids: list[int], seconds: float = END_SECONDS) -> Emptied:
    """Kill the processes with these ids, and wait for at most `seconds` until they are gone."""
    return kill_all(lambda: [pid for pid in pids if is_alive(pid)], seconds)


def own_folder() -> AbstractContextManager[Path]:
    """Return a context manager for a test's temporary folder; it first deletes such folders of killed tests."""
    return durable.own_folder(Path(tempfile.gettempdir()), FOLDERS)
