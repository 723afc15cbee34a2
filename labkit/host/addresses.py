"""Find the address of a PostgreSQL or Kafka server: the one that the user named, or the one that labkit started.

Every process that opens a store looks here. labkit's own server writes its address into the user's cache folder. The
address of a user's server stays in the environment, so that no password reaches a file.
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
    """Return labkit's folder in the user's cache: below XDG_CACHE_HOME, or else below ~/.cache.

    Return None for a user without a home.
    """
    folder = (os.environ if environment is None else environment).get("XDG_CACHE_HOME", "")
    if Path(folder).is_absolute():  # the XDG specification says to ignore others
        return Path(folder) / "labkit"
    try:
        return Path.home() / ".cache" / "labkit"
    except RuntimeError:
        return None


def note(service: str) -> Path | None:
    """Return the file that holds the address of labkit's own `service`; None for a user without a home."""
    folder = cache_folder()
    return None if folder is None else folder / f"{service}.address"


def postgres() -> str:
    """Return the connection string of the user's PostgreSQL, or else of labkit's own.

    Raises `ServiceUnavailable` if there is none.
    """
    return _find("postgres", POSTGRES, "PostgreSQL")


def kafka() -> str:
    """Return the host:port of the user's Kafka broker, or else of labkit's own.

    Raises `ServiceUnavailable` if there is none.
    """
    return _find("kafka", KAFKA, "Kafka broker")


def _find(name: str, variable: str, what: str) -> str:
    if address := os.environ.get(variable, "").strip():
        return address
    place = note(name)
    try:
        noted = "" if place is None else place.read_text(encoding="utf-8").strip()
    except OSError:
        noted = ""
    if not noted:
        remedy = f"start one with labkit services up {name}, or name yours in {variable}"
        raise ServiceUnavailable(f"No {what} is running for the lab: {remedy}.")
    return noted
