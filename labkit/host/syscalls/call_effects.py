"""The interpretation of a held call as a value."""

from typing import NamedTuple

from labkit.host.syscalls.calls import CallKind

Arguments = tuple[int, ...]

HERE = -100
"""AT_FDCWD: the process's working folder."""


class CallEffect(NamedTuple):
    """The effect that a held call would have."""

    kind: CallKind
    path: str = ""
    target: str = ""
    size: int = 0
    offset: int = -1
    content: bytes | None = None
    synced: bool = False
    head: bytes = b""
    name: str = ""
    """A name that says more than the call's own, or empty."""


class Unseen(NamedTuple):
    """An action that cannot be followed from here on."""

    name: str
    path: str = ""


Interpretation = CallEffect | Unseen | None
