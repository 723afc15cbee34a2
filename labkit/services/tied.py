"""A server of one's own that ends with the process that asked for it, even if that is killed by SIGKILL.

A watcher, in a session of its own, starts the server in a fresh folder and then waits at a pipe whose other end only
the asking process holds. The kernel closes that end whatever the process dies of; then the watcher stops the server
and removes the folder. This module must not be used for a server whose data anybody wants to keep.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from stat import S_IXOTH
from typing import NamedTuple

from labkit.errors import LabError, ServiceUnavailable
from labkit.services.contract import Service
from labkit.services.kafka import KafkaService
from labkit.services.postgres import PostgresService
from labkit.stores import servers


class Tied(NamedTuple):
    """A server that ends with this process."""

    address: str
    pid: int
    folder: Path
    watcher: int


def tied_postgres(*settings: str) -> AbstractContextManager[Tied]:
    """A fresh PostgreSQL for a block; `settings` go to initdb, as `-c`, `fsync=off`. Raises `ServiceUnavailable`."""
    return _tied("postgres", *settings)


def tied_kafka() -> AbstractContextManager[Tied]:
    """A fresh Kafka broker for a block. Raises `ServiceUnavailable`."""
    return _tied("kafka")


@contextmanager
def _tied(*arguments: str) -> Iterator[Tied]:
    command = [sys.executable, "-m", "labkit.services.tied", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as watcher:
        assert watcher.stdin is not None
        assert watcher.stdout is not None
        told = json.loads(watcher.stdout.readline() or '{"because": "its watcher died"}')
        if "because" in told:
            raise ServiceUnavailable(told["because"])
        try:
            yield Tied(told["address"], told["pid"], Path(told["folder"]), watcher.pid)
        finally:
            watcher.stdin.close()


def watch(kind: str, settings: Sequence[str]) -> None:
    """Starts a server, tells where it is, and ends it when the pipe closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.environ.pop(servers.KAFKA, None)  # the user's own broker is somebody else's
    service, discard = _postgres(settings) if kind == "postgres" else _kafka()
    try:
        try:
            status = service.up()
            told: dict[str, object] = {"address": status.address, "pid": status.pid, "folder": str(status.folder)}
        except LabError as error:
            told = {"because": str(error)}
        with suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
        sys.stdin.buffer.read()
    finally:
        discard()


def _postgres(settings: Sequence[str]) -> tuple[Service, Callable[[], None]]:
    service = PostgresService(_fresh_folder(), settings=settings)
    return service, service.discard


def _kafka() -> tuple[Service, Callable[[], None]]:
    folder = Path(tempfile.mkdtemp(prefix="labkit-kafka-"))
    service = KafkaService(folder, tied=True)

    def discard() -> None:
        with suppress(LabError):
            service.down()
        shutil.rmtree(folder, ignore_errors=True)

    return service, discard


def _fresh_folder() -> Path:
    """A new folder, for root in a place that an unprivileged user can reach."""
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]  # noqa: S108  # mkdtemp makes it private
    chosen = places[0]
    if os.geteuid() == 0:
        chosen = next(each for each in places if all(over.stat().st_mode & S_IXOTH for over in (each, *each.parents)))
    return Path(tempfile.mkdtemp(prefix="labkit-postgres-", dir=chosen))


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2:])
