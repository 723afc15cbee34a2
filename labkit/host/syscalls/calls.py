"""Defines the system calls of a watched command, and the decisions on them, as values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from labkit.host.processes.sessions import Emptied
from labkit.host.python_line import Line
from labkit.host.syscalls.faults import Delivery, Fault, TimedFault


class CallKind(StrEnum):
    """The kind of lasting effect that a system call has, such as renaming a file or sending bytes to a server."""

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
    """Sets the length of a regular file, and its times even if it has this length already."""
    ATTRIBUTES = "attributes"
    """Changes the times, mode, owner, extended attributes or blocks of a file, a folder or a symbolic link."""
    SEND = "send"
    """Sends bytes to a server that is not part of the command."""
    LINE = "line"
    """No system call: executes a line of Python, or returns from the user's code (`labkit.host.line_watch`)."""
    EXIT = "exit"
    """The command itself exits."""


@dataclass(frozen=True)
class Call:
    """One system call of a watched command, intercepted before the kernel carries it out."""

    number: int
    """The running number of the call in its run, from 1, in the order of arrival."""
    pid: int
    """The id of the calling thread."""
    process: int
    kind: CallKind
    name: str
    """The name of the system call, for example `renameat2`; for a LINE, `line` or `return`."""
    path: str
    """The file's absolute path; for a rename or link the old name; for a LINE its source; empty for SEND and EXIT."""
    target: str
    """For a rename or link the new name; for a SEND the receiver, such as `127.0.0.1:5432` or `unix:/path`."""
    size: int
    """The bytes of a WRITE or SEND, the new length of a TRUNCATE (-1: unknown), the status of an EXIT; otherwise 0."""
    seconds: float
    """The time of the call, in seconds since the command started."""
    offset: int = -1
    """The position of a WRITE in its file; -1 for other calls, or if it is unknown."""
    content: bytes | None = None
    """The bytes of a WRITE; None if `watch` was not asked for them, or if they cannot be read."""
    head: bytes = b""
    """The first bytes of a SEND, if they were in the process's memory; otherwise empty."""
    synced: bool = False
    """Whether a WRITE is durable when it returns, by O_SYNC or O_DSYNC of the file or RWF_DSYNC of the call."""
    line: Line | None = None
    """The line of the user's Python that makes the call; None if there is none, or if it was not read."""
    words: tuple[str, ...] = ()
    """The command line of a Python process, if it was read; otherwise empty."""


class Answer(Enum):
    """The answer to an intercepted call: let it happen, kill the whole command, or hold only this call."""

    GO_ON = "go on"
    KILL = "kill"
    HOLD = "hold"
    """Hold this call until everything is killed, while the other threads go on."""


Decision = Answer | Fault | TimedFault
"""The decision on a held call: let it happen, kill everything before it, hold it, or let it suffer a fault."""


@dataclass(frozen=True)
class WatchedRun:
    """The result of watching a command's system calls: how it ended, and which effects labkit could not follow."""

    status: int | None
    """The exit status if the command ended by itself (negative: the signal that ended it); None if it was killed."""
    held: Call | None
    """The call that never happened, because it was held while everything was killed; None if there was no such call."""
    emptied: Emptied | None
    """The processes that were killed; None if none had to be killed."""
    calls: int
    """The number of calls that the kernel reported, including those without an effect."""
    unseen: Mapping[str, int] = field(default_factory=dict)
    """The actions whose effects cannot be followed, each by name with the number of times that it occurred."""
    unseen_paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The files that the actions in `unseen` concerned, by the names of the actions."""
    began: float = 0.0
    """The time at which the command started, in seconds since the epoch; `Call.seconds` counts from it."""
    root: int = 0
    """The id of the process that became the command."""
    faults: tuple[Delivery, ...] = ()
    """The faults that `decide` asked for, each with the evidence that it was delivered."""


class Watcher(Protocol):
    """The type of functions that watch a command's system calls, such as `labkit.host.syscalls.watching.watch`.

    Another function of this type may watch a command that was started in advance.
    """

    def __call__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        output: Path,
        decide: Callable[[Call], Decision],
        tick: Callable[[], Answer],
        kinds: frozenset[CallKind] = ...,
        contents: bool = ...,
    ) -> WatchedRun: ...


Arguments = tuple[int, ...]

HERE = -100
"""The value of AT_FDCWD, which means the working folder where a call expects a folder's descriptor."""


class CallEffect(NamedTuple):
    """The effect that an intercepted system call would have; the fields are those of `Call`."""

    kind: CallKind
    path: str = ""
    target: str = ""
    size: int = 0
    offset: int = -1
    content: bytes | None = None
    synced: bool = False
    head: bytes = b""
    name: str = ""
    """A more precise name for the call than the system call's own; otherwise empty."""


class Unseen(NamedTuple):
    """An action, such as a write through mapped memory, that labkit only counts, because it cannot see the effects."""

    name: str
    path: str = ""


Interpretation = CallEffect | Unseen | None
