"""The result of interpreting a system call that the kernel holds, before it happens."""

from typing import NamedTuple

from labkit.host.syscalls.calls import CallKind

Arguments = tuple[int, ...]

HERE = -100
"""The value of AT_FDCWD, which as a folder's descriptor means the process's working folder."""


class CallEffect(NamedTuple):
    """The effect that a system call will have once the kernel lets it happen."""

    kind: CallKind
    path: str = ""
    target: str = ""
    size: int = 0
    offset: int = -1
    content: bytes | None = None
    synced: bool = False
    head: bytes = b""
    name: str = ""
    """A name for the call that says more than the system call's own; otherwise empty."""


class Unseen(NamedTuple):
    """An action of a process whose effects this package cannot follow, such as a write through mapped memory."""

    name: str
    path: str = ""


Interpretation = CallEffect | Unseen | None
