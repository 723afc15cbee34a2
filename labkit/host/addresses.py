"""Find the address of a PostgreSQL or Kafka server: the one that the user named, or the one that labkit started.

Every process that opens a store calls this module. The address of labkit's own server is in a file of the user's cache
folder. The address of a user's server stays in the environment, so that no password gets into a file.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from labkit.core.errors import ServiceUnavailable

POSTGRES = "LABKIT_POSTGRES"
"""The environment variable with the connection string (DSN) of the user's own PostgreSQL."""

KAFKA = "LABKIT_KAFKA"
"""The environment variable with the host:port of the user's own Kafka broker."""


def cache_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return labkit's folder in the user's cache, whether or not it exists; None for a user without a home folder.

    It is in XDG_CACHE_HOME if that variable has an absolute path, otherwise in ~/.cache. `environment` replaces
    `os.environ`.
    """
    folder = (os.environ if environment is None else environment).get("XDG_CACHE_HOME", "")
    if Path(folder).is_absolute():  # the XDG specification says to ignore others
        return Path(folder) / "labkit"
    try:
        return Path.home() / ".cache" / "labkit"
    except RuntimeError:
        return None


def required_cache_folder(what: str, otherwise: str = "") -> Path:
    """Return labkit's folder in the user's cache. Raises `ServiceUnavailable` for a user without a home folder.

    The error's message begins with `what`, a plural such as "The jars of Kafka", which need the folder. The message
    tells the user to set XDG_CACHE_HOME, or to follow the advice in `otherwise`.
    """
    folder = cache_folder()
    if folder is None:
        alternative = f", or {otherwise}" if otherwise else ""
        raise ServiceUnavailable(
            f"{what} need a cache folder, but this user has no home folder for one; set XDG_CACHE_HOME to a folder"
            f"{alternative}."
        )
    return folder


def note(service: str) -> Path | None:
    """Return the file with the address of labkit's own server (`postgres` or `kafka`); None without a home folder."""
    folder = cache_folder()
    return None if folder is None else folder / f"{service}.address"


def postgres() -> str:
    """Return the connection string from LABKIT_POSTGRES, or of labkit's own server.

    Raises `ServiceUnavailable` if the variable is not set and labkit's own server does not run.
    """
    return _find("postgres", POSTGRES, "PostgreSQL")


def kafka() -> str:
    """Return the host:port from LABKIT_KAFKA, or of labkit's own broker.

    Raises `ServiceUnavailable` if the variable is not set and labkit's own broker does not run.
    """
    return _find("kafka", KAFKA, "Kafka broker")


def _find(name: str, variable: str, server: str) -> str:
    if address := os.environ.get(variable, "").strip():
        return address
    place = note(name)
    try:
        address = "" if place is None else place.read_text(encoding="utf-8").strip()
    except OSError:
        address = ""
    if not address:
        raise ServiceUnavailable(
            f"No {server} is running for the lab: start one with `labkit services up {name}`, "
            f"or set {variable} to the address of your own."
        )
    return address
