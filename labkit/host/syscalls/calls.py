"""What a watched command asks the kernel for, as values.

This module holds values only: it must not start, read or kill anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from labkit.host.processes.sessions import Emptied


class CallKind(StrEnum):
    """What a system call does to the world outside of its process."""

    RENAME = "rename"
    LINK = "link"
    """A second name of a file, or a symbolic link."""
    UNLINK = "unlink"
    """A name of a file, or an empty folder, is removed."""
    MKDIR = "mkdir"
    SYNC = "sync"
    """What was written before survives a loss of power from here on."""
    CREATE = "create"
    """A file that was not there is made, empty."""
    WRITE = "write"
    """Bytes for a regular file."""
    TRUNCATE = "truncate"
    """A regular file gets another length."""
    SEND = "send"
    """Bytes for a server that is no part of the command."""
    EXIT = "exit"
    """The command itself ends, by its own will."""


@dataclass(frozen=True)
class Call:
    """One system call, before it happens."""

    number: int
    """From 1, in the order in which the calls were asked for in one run."""
    pid: int
    """The thread that asked."""
    process: int
    kind: CallKind
    name: str
    """The system call, as `renameat2`."""
    path: str
    """The file, absolute; of a rename or link the old name; empty of a SEND and an EXIT."""
    target: str
    """Of a rename or link the new name; of a SEND the peer, as `127.0.0.1:5432` or `unix:/path`."""
    size: int
    """Bytes of a WRITE or SEND; the new length of a TRUNCATE (-1: not known); the status of an EXIT; else 0."""
    seconds: float
    """Since the command was started."""
    offset: int = -1
    """Of a WRITE its place in the file; -1: not asked for, or not known."""
    content: bytes | None = None
    """Of a WRITE its bytes, where `watch` was asked for them; None: not asked for, or not readable."""
    head: bytes = b""
    """Of a SEND its first bytes, as far as they were in the memory of the process."""
    synced: bool = False
    """Whether a WRITE is durable when it returns (the file was opened with O_SYNC or O_DSYNC, or RWF_DSYNC)."""


class Answer(Enum):
    """What is to become of a call that is held, or of the whole command."""

    GO_ON = "go on"
    KILL = "kill"


@dataclass(frozen=True)
class WatchedRun:
    """How a watched command ended."""

    status: int | None
    """Its exit status when it ended by itself (negative: the signal it died of); None when it was killed."""
    held: Call | None
    """The call that was held while everything was killed; it never happened."""
    emptied: Emptied | None
    """What was killed; None where nothing had to be."""
    calls: int
    """Notifications in all, also of calls that were of no interest."""
    unseen: Mapping[str, int] = field(default_factory=dict)
    """What cannot be followed, by name, and how often it was met."""
    unseen_paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the same names: the files concerned, where there are any."""
    began: float = 0.0
    """When the command was started, in seconds since the epoch: the zero of `Call.seconds`."""
