"""Where an external server is found: the one that the user named, or the lab's own.

A store is opened in many processes, and each looks here. The lab's own server notes its address in the user's cache
folder. This module must not start, stop or ask a server, and must not keep a password: a named address stays in the
environment.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from labkit.core.errors import ServiceUnavailable

POSTGRES = "LABKIT_POSTGRES"
"""The environment variable that names the user's own PostgreSQL by a connection string (DSN)."""

KAFKA = "LABKIT_KAFKA"
"""The environment variable that names the user's own Kafka broker as host:port."""


def cache_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """The lab's part of the user's cache folder: XDG_CACHE_HOME, else ~/.cache; None for a user without a home."""
    folder = (os.environ if environment is None else environment).get("XDG_CACHE_HOME", "")
    if Path(folder).is_absolute():  # others are to be ignored, says the XDG specification
        return Path(folder) / "labkit"
    try:
        return Path.home() / ".cache" / "labkit"
    except RuntimeError:
        return None


def note(service: str) -> Path | None:
    """The file in which the lab's own server of this name says where it is."""
    folder = cache_folder()
    return None if folder is None else folder / f"{service}.address"


def postgres() -> str:
    """The connection string of the user's PostgreSQL, else of the lab's own. Raises `ServiceUnavailable`."""
    return _find("postgres", POSTGRES, "PostgreSQL")


def kafka() -> str:
    """The host:port of the user's Kafka broker, else of the lab's own. Raises `ServiceUnavailable`."""
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
