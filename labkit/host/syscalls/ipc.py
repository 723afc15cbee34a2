"""Finds out whether a later process can find a SysV object, such as a semaphore, in which a program may keep state."""

from pathlib import Path

from labkit.host.syscalls.calls import Unseen

_NAMES = {"shm": "SysV shared memory", "sem": "SysV semaphores", "msg": "a SysV message queue"}
_OBJECTS = Path("/proc/sysvipc")
"""The folder in which the kernel lists SysV objects; the first two columns are an object's key and its id."""


def used(kind: str, identifier: int) -> Unseen | None:
    """Return the `Unseen` that labkit counts when a process uses the SysV object with this id (`identifier`).

    `kind` is `shm`, `sem` or `msg`. Returns None if the object has no key by which a later process could find it.
    """
    try:
        rows = (_OBJECTS / kind).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        rows = []
    is_private = any(row.split()[:2] == ["0", str(identifier)] for row in rows)
    return None if is_private else Unseen(_NAMES[kind])


def created(kind: str, key: int) -> Unseen | None:
    """Return the `Unseen` that labkit counts when a call may have created the SysV object with this key.

    `kind` is as in `used`. Returns None for a private object, which no later process can find.
    """
    return Unseen(_NAMES[kind]) if key else None
