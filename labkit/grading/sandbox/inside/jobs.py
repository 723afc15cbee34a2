"""Orders to a sandbox, given before a learner's code runs in it: plain values, none of them hidden from the learner."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """The levels of isolation of a learner's code, best first."""

    NAMESPACES = "namespaces"
    """Own network, processes, mounts, IPC and host name, as an unprivileged user without any right. Needs root."""
    USER_NAMESPACES = "user-namespaces"
    """The same within a user namespace, as the grading user, who has no rights there but to the shown folders."""
    PLAIN = "plain"
    """A process of its own with limits. It sees the network and every file that the grading user may read."""


@dataclass(frozen=True)
class Limits:
    """Limits of one submission: sizes in bytes, times in seconds."""

    memory: int = 2 * 1024**3
    """Address space of one process."""
    total_memory: int = 3 * 1024**3
    """Memory of all processes together."""
    processes: int = 96
    """Processes and threads."""
    file_size: int = 32 * 1024**2
    disk: int = 64 * 1024**2
    """All files together, which are kept in memory."""
    open_files: int = 256
    """Open files of one process, and those on their way from one process to another."""
    sockets: int = 512
    """Sockets of all processes together."""
    output: int = 4 * 1024**2
    """Characters, about, that all cells together may print or show."""
    cell_seconds: float = 10.0
    total_seconds: float = 60.0
    """From the first start to the last answer."""


@dataclass(frozen=True)
class Place:
    """The view of the machine that a sandbox has."""

    root: str
    """An empty folder to mount on."""
    shown: tuple[str, ...]
    """Folders and files that can be read."""
    masked: tuple[str, ...] = ()
    """Folders within `shown` that appear empty."""
    user: int = 0
    """The user id that a sandbox started by root changes to."""


@dataclass(frozen=True)
class Job:
    """One run of one notebook."""

    level: Level
    place: Place
    limits: Limits
    names: tuple[str, ...]
    """The Python names of the answers, one for each connection that comes along."""
    environment: dict[str, str] = field(default_factory=dict)


def job_of(told: dict[str, Any]) -> Job:
    """The job in a parsed JSON message."""
    shown = told["place"]
    place = Place(shown["root"], tuple(shown["shown"]), tuple(shown["masked"]), shown["user"])
    return Job(Level(told["level"]), place, Limits(**told["limits"]), tuple(told["names"]), told["environment"])
