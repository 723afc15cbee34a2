"""The system calls of a watched command as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from labkit.host.processes.sessions import Emptied


class CallKind(StrEnum):
    """The effect of a system call outside of its process."""

    RENAME = "rename"
    LINK = "link"
    """Creates a second name of a file, or a symbolic link."""
    UNLINK = "unlink"
    """Removes a name of a file, or an empty folder."""
    MKDIR = "mkdir"
    SYNC = "sync"
    """Makes earlier writes survive a power cut."""
    CREATE = "create"
    """Creates an empty file."""
    WRITE = "write"
    """Writes bytes to a regular file."""
    TRUNCATE = "truncate"
    """Changes the length of a regular file."""
    ATTRIBUTES = "attributes"
    """Changes the times, mode, owner or extended attributes of a file, a folder or a symbolic link."""
    SEND = "send"
    """Sends bytes to a server that is not part of the command."""
    EXIT = "exit"
    """The command itself exits."""


@dataclass(frozen=True)
class Call:
    """One system call, before it happens."""

    number: int
    """Its number in the run, from 1, in the order of arrival."""
    pid: int
    """The calling thread."""
    process: int
    kind: CallKind
    name: str
    """The name of the system call, for example `renameat2`."""
    path: str
    """The file's absolute path; for a rename or link the old name; empty for SEND and EXIT."""
    target: str
    """For a rename or link the new name; for a SEND the peer, for example `127.0.0.1:5432` or `unix:/path`."""
    size: int
    """The bytes of a WRITE or SEND, the new length of a TRUNCATE (-1: unknown), the status of an EXIT; otherwise 0."""
    seconds: float
    """Seconds since the command started."""
    offset: int = -1
    """The position of a WRITE in its file; -1 if not requested or unknown."""
    content: bytes | None = None
    """The bytes of a WRITE if `watch` was asked for them; None if not requested or unreadable."""
    head: bytes = b""
    """The first bytes of a SEND, if they were in the process's memory."""
    synced: bool = False
    """Whether a WRITE is durable when it returns (the file was opened with O_SYNC or O_DSYNC, or the call uses
    RWF_DSYNC).
    """


class Answer(Enum):
    """The decision on a held call, or on the whole command."""

    GO_ON = "go on"
    KILL = "kill"


@dataclass(frozen=True)
class WatchedRun:
    """How a watched command ended."""

    status: int | None
    """The exit status if the command ended by itself (negative: the signal that ended it); None if it was killed."""
    held: Call | None
    """The call that was held while everything was killed; it never happened."""
    emptied: Emptied | None
    """The processes that were killed; None if none had to be."""
    calls: int
    """The number of notifications, including calls without interest."""
    unseen: Mapping[str, int] = field(default_factory=dict)
    """How often each kind of call occurred that cannot be followed."""
    unseen_paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The files that these calls concerned, by the same names."""
    began: float = 0.0
    """When the command started, in seconds since the epoch: the zero of `Call.seconds`."""
