"""Runs a private server for temporary data. It ends with the process that asked for it, and its folder is deleted."""

import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from labkit.host import addresses
from labkit.host.processes.tether import serve_tethered, tethered
from labkit.host.servers.kafka import KafkaService
from labkit.host.servers.postgres import PostgresService
from labkit.host.servers.postgres_programs import short_place


class TetheredServer(msgspec.Struct, frozen=True):
    """A running PostgreSQL or Kafka server. It ends when the process that asked for it ends, even by SIGKILL."""

    address: str
    pid: int
    folder: str
    guard: int
    """The id of the process that ends the server."""


def tethered_postgres(*settings: str, memory: int = 0) -> AbstractContextManager[TetheredServer]:
    """Run a new PostgreSQL server in a `with` block; stop it and delete its data afterwards, or if this process dies.

    `settings` are arguments of initdb, such as `-c`, `fsync=off`. On Linux, `memory` limits the address space of each
    of the server's processes, in bytes; 0 means no limit. Raises `ServiceUnavailable` if the server does not start.
    """
    return tethered(TetheredServer, "labkit.host.servers.tethered", "postgres", str(memory), *settings)


def tethered_kafka() -> AbstractContextManager[TetheredServer]:
    """Run a new Kafka broker in a `with` block; stop it and delete its data afterwards, or if this process dies.

    Raises `ServiceUnavailable` if the broker does not start.
    """
    return tethered(TetheredServer, "labkit.host.servers.tethered", "kafka")


def guard(kind: str, settings: Sequence[str]) -> None:
    """Start a server (`kind`: postgres or kafka) and print its address on standard output; stop it when stdin closes.

    For PostgreSQL, the first of `settings` is a memory limit in bytes (0: none), and the others are arguments of
    initdb.
    """
    os.environ.pop(addresses.KAFKA, None)  # this guard must not use the user's own broker
    if kind == "postgres":
        memory, *arguments = settings
        if int(memory) and sys.platform == "linux":
            # For this process, so that the server inherits it: root may lack the right to limit another user's process.
            resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
        service: PostgresService | KafkaService = PostgresService(_fresh_folder(), settings=arguments)
    else:
        service = KafkaService(Path(tempfile.mkdtemp(prefix="labkit-kafka-")), tethered=True)

    def begin() -> TetheredServer:
        status = service.up()
        assert status.pid is not None
        return TetheredServer(status.address, status.pid, str(status.folder), os.getpid())

    serve_tethered(begin, service.discard)


def _fresh_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="labkit-postgres-", dir=short_place()))


if __name__ == "__main__":
    guard(sys.argv[1], sys.argv[2:])
