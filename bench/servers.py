"""Provide the servers that a measurement writes to: the user's own, or new ones that wait for the disk."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from labkit.host import addresses
from labkit.host.servers.kafka import KafkaService
from labkit.host.servers.tethered import tethered_postgres


@contextmanager
def postgres() -> Iterator[int | None]:
    """Provide the PostgreSQL server that all stores in a `with` block use.

    Yields the id of the server's main process, or None if it is a server of the user.
    """
    if os.environ.get(addresses.POSTGRES, "").strip():
        yield None
        return
    with tethered_postgres() as server, patch.dict(os.environ, {addresses.POSTGRES: server.address}):
        yield server.pid


@contextmanager
def kafka() -> Iterator[str]:
    """Provide the Kafka broker that all stores in a `with` block use; yield its address."""
    if given := os.environ.get(addresses.KAFKA, "").strip():
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="labkit-bench-", ignore_cleanup_errors=True) as folder:
        broker = KafkaService(Path(folder), tethered=True)
        try:
            address = broker.up().address
            with patch.dict(os.environ, {addresses.KAFKA: address}):
                yield address
        finally:
            broker.down()
