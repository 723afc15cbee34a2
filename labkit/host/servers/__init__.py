"""The servers that the lab needs: found, started, examined and stopped, and never left behind.

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
"""The function that imports each service, by name."""


def service(name: str) -> Service:
    """Return the service of this name. Raises `InvalidInput` for an unknown one."""
    if name not in SERVICES:
        raise InvalidInput(f"services {name}: unknown; {nearest(name, list(SERVICES))}")
    return SERVICES[name]()
