"""Finds, starts, examines and stops the servers that labkit needs, such as PostgreSQL, and leaves none behind.

A service handles ports, files and processes, and does not know what a sink or a job is.
"""

from pkgutil import resolve_name

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.host.servers.contract import Service, Status

__all__ = ["SERVICES", "Service", "Status", "service"]


SERVICES = {
    "postgres": "labkit.host.servers.postgres:PostgresService",
    "kafka": "labkit.host.servers.kafka:KafkaService",
}
"""The module and the class of each service, by the service's name; a module is imported only when it is needed."""


def service(name: str) -> Service:
    """Return the object that controls `postgres` or `kafka`. Raises `InvalidInput` for another name."""
    if name not in SERVICES:
        raise InvalidInput(f"services {name}: there is no such server; {nearest(name, list(SERVICES))}")
    instance: Service = resolve_name(SERVICES[name])()
    return instance
