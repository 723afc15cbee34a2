"""What the lab needs from outside Python: found, started, asked for its state, stopped, never left behind.

A service looks at ports, files and processes. It must not know what a sink or a job is.
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
"""Every service by its name, with the function that imports it."""


def service(name: str) -> Service:
    """The service of this name. Raises `InvalidInput` for an unknown one."""
    if name not in SERVICES:
        raise InvalidInput(f"services {name}: unknown; {nearest(name, list(SERVICES))}")
    return SERVICES[name]()
