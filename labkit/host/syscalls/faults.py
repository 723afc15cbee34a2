"""The names of the faults that labkit can inject into a held system call, and the evidence that it did so.

`labkit.host.syscalls.delivery` injects them. This module imports nothing else, so that options can use the names.
"""

from enum import StrEnum
from typing import NamedTuple


class Fault(StrEnum):
    """A fault that labkit can inject into a system call. The value is the name that a user types."""

    EIO = "eio"
    """The call is not carried out and returns EIO, as on a broken disk."""
    ENOSPC = "enospc"
    """The call is not carried out and returns ENOSPC, as on a full disk."""
    EINTR = "eintr"
    """The call is not carried out and returns EINTR, as when a signal comes."""
    FSYNC = "fsync"
    """A call that syncs a file, such as `fsync`, is not carried out and returns EIO."""
    LOST_ANSWER = "lost-answer"
    """A server gets the request and answers, but the connection is cut before the answer arrives."""
    SHORT_WRITE = "short-write"
    """The call writes half of the bytes, and returns their number."""
    SIGTERM = "sigterm"
    """The command's process group gets SIGTERM, and SIGKILL if it still runs after a grace period."""
    DELAY = "delay"
    """The call happens late."""
    ONE_PROCESS = "one-process"
    """Only the process that makes the call is killed, before the call."""


class TimedFault(NamedTuple):
    """A fault with a time in seconds: the delay of a call, or the time between SIGTERM and SIGKILL."""

    fault: Fault
    seconds: float


class Delivery(NamedTuple):
    """The evidence that a fault was injected: the system call that suffered the fault, and what the call returned."""

    fault: Fault
    call: int
    """The running number of the call in its run."""
    returned: int
    """The value that labkit made the call return: a number of bytes, or a negative errno."""
    failure: str = ""
    """The reason why the fault was not delivered; empty if it was."""
    overdue: bool = False
    """Whether the command still ran at the end of the grace period after a SIGTERM, and was killed."""
