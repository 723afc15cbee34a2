"""Runs labkit's own PostgreSQL server from a wheel, without Docker, root or account; a user's server is only examined.

    FOLDER/data      the cluster, with prepared transactions enabled
    FOLDER/socket    its Unix socket, which only its user can reach; there is no port
    FOLDER/log       the server's output

A lock on FOLDER lets one process at a time start or stop the server.
"""

import hashlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar

import psutil

from labkit.core.errors import LabError, ServiceUnavailable
from labkit.host import addresses, durable
from labkit.host.servers import postgres_programs as programs
from labkit.host.servers.contract import Status, Stopped, running_pid
from labkit.host.servers.postgres_connection import address_of, ask, redacted

USER = "labkit"
LONGEST_SOCKET = 90
"""The greatest length in bytes of the path of the socket's folder, so that the whole path of the socket fits.

A socket's whole path may have 104 bytes on macOS, and 108 on Linux.
"""

START_SECONDS, STOP_SECONDS = 30, 20

_STOPPING = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
"""The signals that stop a server, the gentlest first; only the first one lets it shut down cleanly."""

SETTINGS = {
    "max_prepared_transactions": "64",
    "max_connections": "200",
    "listen_addresses": "''",
    "dynamic_shared_memory_type": "mmap",
    "lc_messages": "'C'",
}
"""The server settings that differ from PostgreSQL's defaults.

With `mmap`, shared memory is in files of the server's folder, so that none remains when the folder is deleted.
"""


class PostgresService:
    """A PostgreSQL server whose data, socket and log are in one folder.

    An object created without a folder stands for the user's server in `LABKIT_POSTGRES`, if this variable is set,
    otherwise for labkit's own server in the user's cache.
    """

    name: ClassVar[str] = "postgres"

    def __init__(self, folder: Path | None = None, *, settings: Sequence[str] = ()) -> None:
        self._named = "" if folder is not None else os.environ.get(addresses.POSTGRES, "").strip()
        self._note = addresses.note("postgres") if folder is None else None
        self._wanted = folder
        self._settings = settings

    def up(self) -> Status:
        if self._named:
            return self._yours()
        folder = self.folder
        with durable.explained(folder):
            durable.make_folder(folder)
        with durable.explained(folder), durable.locked(folder):
            if not self._answers():
                self._remove_stale()
                self._create()
                self._start()
            self._keep_note(self.address)
        return self.status()

    def status(self) -> Status:
        if self._named:
            with suppress(ServiceUnavailable):
                return self._yours()
            return Status(self.name, "down", redacted(self._named))
        pid = self._pid()
        if pid is None:
            return Status(self.name, "down", folder=self.folder)
        if not self._answers():
            return Status(self.name, "stale", folder=self.folder, pid=pid if self._is_ours(pid) else None)
        return Status(self.name, "up", self.address, pid, self.folder, ask(self.address).version)

    def down(self) -> Status:
        if self._named or not self.folder.exists():
            return self.status()
        with durable.explained(self.folder), durable.locked(self.folder):
            self._stop(*_STOPPING)
            self._keep_note("")
        return self.status()

    def stop(self) -> Stopped:
        pid = running_pid(self.status(), "PostgreSQL server", "stop")
        with durable.explained(self.folder), durable.locked(self.folder):
            number = self._stop(*_STOPPING)
            self._keep_note("")
        # After SIGQUIT or SIGKILL the next start must recover, as after a crash.
        if number is not _STOPPING[0]:
            raise ServiceUnavailable(
                f"PostgreSQL did not stop within {STOP_SECONDS:.0f} s after SIGINT, so labkit ended it by force; see "
                f"the reason in {self._log}."
            )
        return Stopped([pid], number)

    def kill(self) -> list[int]:
        server = psutil.Process(running_pid(self.status(), "PostgreSQL server", "kill"))
        processes = [server, *server.children(recursive=True)]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        # PostgreSQL refuses to start while a process of the old server uses its shared memory.
        wait(lambda: not self._left(), STOP_SECONDS, "the killed server has not ended")
        return [process.pid for process in processes]

    def discard(self) -> None:
        """Stop the server immediately and delete its folder, which the caller must have given to the constructor."""
        assert self._wanted is not None
        with suppress(LabError):
            self._stop(signal.SIGQUIT, signal.SIGKILL)
        for folder in {self._socket(), self.folder, self._wanted}:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def folder(self) -> Path:
        """Return the folder of the server's data, socket and log, whether or not it exists."""
        return programs.place(self._wanted or addresses.required_cache_folder("PostgreSQL's data") / self.name)

    @property
    def address(self) -> str:
        """Return the connection string. It has no password, because others cannot enter the socket's folder."""
        return address_of(self._socket(), USER)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _socket(self) -> Path:
        """Return the folder of the server's socket.

        The folder is inside the server's folder, or in `short_place()` if that path is too long for a Unix socket.
        """
        inside = self.folder / "socket"
        if len(str(inside).encode()) <= LONGEST_SOCKET:
            return inside
        digest = hashlib.sha256(str(inside).encode()).hexdigest()[:16]
        return programs.short_place() / f"labkit-{os.geteuid()}-{digest}"

    def _yours(self) -> Status:
        return Status(self.name, "yours", redacted(self._named), version=ask(self._named).version)

    def _pid(self) -> int | None:
        try:
            return int((self._data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0])
        except (OSError, ValueError):
            return None

    def _is_ours(self, pid: int) -> bool:
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            return process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == self._data.resolve()
        return False

    def _is_gone(self, pid: int) -> bool:
        return not self._is_ours(pid)

    def _answers(self) -> bool:
        pid = self._pid()
        if pid is None or not self._is_ours(pid):
            return False
        with suppress(LabError):
            return bool(ask(self.address).version)
        return False

    def _remove_stale(self) -> None:
        """Remove the socket and the pid file that a crashed server left behind.

        Raises `ServiceUnavailable` if the server has not crashed, but still runs.
        """
        pid = self._pid()
        if pid is not None and self._is_ours(pid):
            raise ServiceUnavailable(
                f"PostgreSQL in {self.folder} is running (process {pid}), but does not answer: `labkit services down "
                "postgres` stops it, and `labkit services up postgres` starts it again."
            )
        wait(lambda: not self._left(), STOP_SECONDS, f"the killed server in {self.folder} has not ended")
        for note in (self._data / "postmaster.pid", *self._socket().glob(".s.PGSQL.*")):
            note.unlink(missing_ok=True)

    def _left(self) -> list[psutil.Process]:
        # All processes in the data folder, because child processes of a killed server may outlive it.
        return [process for process in psutil.process_iter() if self._is_ours(process.pid)]

    def _create(self) -> None:
        """Create the server's data folder (complete, or not at all) and its file of settings."""
        socket = self._socket()
        for private in (self.folder, socket):
            private.mkdir(exist_ok=True)
            _refuse_foreign(private)
            programs.hand_over(private)
        if not self._data.exists():
            draft = self.folder / "data.part"
            shutil.rmtree(draft, ignore_errors=True)
            arguments = ["-D", str(draft), "-U", USER, "-E", "UTF8", "--locale=C", "--auth=trust"]
            done = programs.run("initdb", *arguments, *self._settings, cwd=self.folder)
            if done.returncode:
                reason = programs.reason_in(done.stdout.splitlines())
                raise ServiceUnavailable(
                    f"PostgreSQL could not be set up in {self.folder} ({reason}); check that there is free space."
                )
            with (draft / "postgresql.conf").open("a", encoding="utf-8") as file:
                file.write("include_if_exists 'labkit.conf'\n")
            # The configuration is included before the rename, so that an existing cluster always reads `labkit.conf`.
            draft.rename(self._data)
        quoted = str(socket).replace("'", "''")
        settings = {**SETTINGS, "unix_socket_directories": f"'\"{quoted}\"'"}
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        settings_file = self._data / "labkit.conf"
        settings_file.write_text(lines, encoding="utf-8")
        settings_file.chmod(0o644)  # independent of root's umask; the folder itself is private

    def _start(self) -> None:
        # The log grows over several starts, and only its new part explains this start.
        before = len(self._log_lines())
        command = ["start", "-w", "-t", str(START_SECONDS), "-D", str(self._data), "-l", str(self._log)]
        done = programs.run("pg_ctl", *command, cwd=self.folder, seconds=START_SECONDS + 10)
        if done.returncode or not self._answers():
            reason = programs.reason_in(self._log_lines()[before:] or done.stdout.splitlines())
            raise ServiceUnavailable(
                f"PostgreSQL in {self.folder} did not start ({reason}); see {self._log}; if its data is damaged, "
                f"delete {self.folder} and start the server again."
            )

    def _log_lines(self) -> list[str]:
        with suppress(OSError):
            return self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return []

    def _stop(self, *signals: signal.Signals) -> signal.Signals | None:
        """Send these signals one after another until the server is gone; return the last signal sent, or None."""
        sent = None
        for number in signals:
            pid = self._pid()
            if pid is None or not self._is_ours(pid):
                break
            with suppress(ProcessLookupError):
                # SIGCONT first, because a suspended server reacts only to SIGKILL.
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, number)
            sent = number
            with suppress(ServiceUnavailable):
                wait(partial(self._is_gone, pid), STOP_SECONDS, "the server has not stopped")
        self._remove_stale()
        return sent

    def _keep_note(self, address: str) -> None:
        # Other labkit processes read this file; an empty address says that the server is down.
        if self._note is not None:
            durable.make_folder(self._note.parent)
            durable.replace(self._note, address)


def _refuse_foreign(folder: Path) -> None:
    if folder.is_symlink() or folder.stat().st_uid not in programs.users():
        raise ServiceUnavailable(
            f"{folder} is a link or belongs to another user, who could change its files; have it removed, or set "
            "XDG_CACHE_HOME to a folder of your own."
        )


def wait(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until `condition` is True. Raises `ServiceUnavailable` if it is still False after `seconds`.

    `what` says in the error's message what did not happen, such as "the server has not stopped".
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise ServiceUnavailable(f"PostgreSQL: labkit waited {seconds:g} s, but {what}; try again later.")
        time.sleep(0.01)
