"""Finds, starts, examines and stops the servers that labkit needs, and leaves none behind.

A service handles ports, files and processes, and does not know what a sink or a job is.
"""

from collections.abc import Callable

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.host.servers.contract import Service, Status

__all__ = ["SERVICES", "Service", "Status", "service"]


def _postgres() -> Service:
    from labkit.host.servers.postgres import PostgresService

    return PostgresService()


def _kafka() -> Service:
    from labkit.host.servers.kafka import KafkaService

    return KafkaService()


SERVICES: dict[str, Callable[[], Service]] = {"postgres": _postgres, "kafka": _kafka}
"""For the name of each service, the function that imports it and returns it."""


def service(name: str) -> Service:
    """Return the object that controls `postgres` or `kafka`. Raises `InvalidInput` for another name."""
    if name not in SERVICES:
        raise InvalidInput(f"services {name}: there is no such server; {nearest(name, list(SERVICES))}")
    return SERVICES[name]()
