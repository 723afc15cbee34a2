"""What a held call is about to do, as a value. This module holds values only."""

from typing import NamedTuple

from labkit.host.syscalls.calls import CallKind

Arguments = tuple[int, ...]

HERE = -100
"""AT_FDCWD: the folder of the process."""


class Deed(NamedTuple):
    """What a call is about to do."""

    kind: CallKind
    path: str = ""
    target: str = ""
    size: int = 0
    offset: int = -1
    content: bytes | None = None
    synced: bool = False
    head: bytes = b""
    name: str = ""
    """Where it says more than the call's own name."""


class Unseen(NamedTuple):
    """Something that cannot be followed from here on."""

    name: str
    path: str = ""


Found = Deed | Unseen | None
