"""Finds out whether a later process can find a SysV object, such as a semaphore, in which a program may keep state."""

from pathlib import Path

from labkit.host.syscalls.calls import Unseen

_NAMES = {"shm": "SysV shared memory", "sem": "SysV semaphores", "msg": "a SysV message queue"}
_OBJECTS = Path("/proc/sysvipc")
"""The folder in which the kernel lists SysV objects; the first two columns are an object's key and its id."""


def used(kind: str, identifier: int) -> Unseen | None:
    """Return an `Unseen` (an action whose effects labkit cannot follow) for the use of a SysV object.

    `kind` is `shm`, `sem` or `msg`, and `identifier` the object's id. Returns None if the object has no key by which a
    later process could find it.
    """
    try:
        rows = (_OBJECTS / kind).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        rows = []
    is_private = any(row.split()[:2] == ["0", str(identifier)] for row in rows)
    return None if is_private else Unseen(_NAMES[kind])


def created(kind: str, key: int) -> Unseen | None:
    """Return an `Unseen` (an action whose effects labkit cannot follow) for a call that may create a SysV object.

    `kind` is `shm`, `sem` or `msg`. Returns None if the object's `key` is 0, because then the object is private and no
    later process can find it.
    """
    return Unseen(_NAMES[kind]) if key else None
