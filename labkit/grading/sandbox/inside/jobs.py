"""Defines the requests that the grader sends to a sandbox; they contain nothing that learners must not see."""

from dataclasses import dataclass, field
from enum import StrEnum


class Level(StrEnum):
    """The levels of isolation for a learner's code, best first."""

    NAMESPACES = "namespaces"
    """The code has its own network, processes, mounts, IPC and host name, as a user without rights. Needs root."""
    USER_NAMESPACES = "user-namespaces"
    """The same namespaces without root: the code runs as the grading user, who can only read the shown folders."""
    PLAIN = "plain"
    """A process with limits, but without namespaces: it can use the network and the files of the grading user."""


@dataclass(frozen=True)
class Limits:
    """The limits for the sandbox of one submission: sizes in bytes, times in seconds."""

    memory: int = 2 * 1024**3
    """The address space of one process."""
    total_memory: int = 3 * 1024**3
    """The memory of all processes together."""
    processes: int = 96
    """The number of processes and threads."""
    file_size: int = 32 * 1024**2
    disk: int = 64 * 1024**2
    """The size of all files together, which are kept in memory."""
    open_files: int = 256
    """The number of open files of one process, including those in transit from one process to another."""
    sockets: int = 512
    """The number of sockets of all processes together."""
    output: int = 4 * 1024**2
    """About how many characters all cells together may print or show."""
    cell_seconds: float = 10.0
    total_seconds: float = 60.0
    """The time from the start of the first run to the last answer."""


@dataclass(frozen=True)
class Place:
    """The files of the machine that a sandbox can see, and the sandbox's user id."""

    root: str
    """The path of an empty folder that becomes the sandbox's root."""
    shown: tuple[str, ...]
    """The folders and files that the sandbox may read."""
    masked: tuple[str, ...] = ()
    """The folders within `shown` that appear empty."""
    user: int = 0
    """The user id of a sandbox that root starts."""


@dataclass(frozen=True)
class Job:
    """A request to the fork server: run one notebook in a sandbox with these settings."""

    level: Level
    place: Place
    limits: Limits
    names: tuple[str, ...]
    """The Python names of the learner's answers; the connections sent with the request are in the same order."""
    environment: dict[str, str] = field(default_factory=dict)
