"""A server of one's own that ends with the process that asked for it: in a fresh folder, which is removed at its end.

This module must not be used for a server whose data anybody wants to keep.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from labkit.core.errors import LabError
from labkit.host import addresses
from labkit.host.processes.tether import hold, watched
from labkit.host.servers.contract import Service
from labkit.host.servers.kafka import KafkaService
from labkit.host.servers.postgres import PostgresService
from labkit.host.servers.postgres_programs import short_place


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
    with watched("labkit.host.servers.tethered", *arguments) as told:
        yield Tied(told["address"], told["pid"], Path(told["folder"]), told["watcher"])


def watch(kind: str, settings: Sequence[str]) -> None:
    """Starts a server, tells where it is, and ends it when the pipe closes."""
    os.environ.pop(addresses.KAFKA, None)  # the user's own broker is somebody else's
    service, discard = _postgres(settings) if kind == "postgres" else _kafka()

    def begin() -> dict[str, object]:
        status = service.up()
        return {
            "address": status.address,
            "pid": status.pid,
            "folder": str(status.folder),
        }

    hold(begin, discard)


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
    return Path(tempfile.mkdtemp(prefix="labkit-postgres-", dir=short_place()))


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2:])
