"""Interprets calls on kernel objects that outlive every process, such as SysV shared memory.

A program may keep state there that no file shows, so these calls are reported as `Unseen`.
"""

from pathlib import Path

from labkit.host.syscalls.calls import Interpretation, Unseen

_READ_ONLY = 0o10000  # SHM_RDONLY
_IPC_64 = 0x100
_SETS = (16, 17)  # SETVAL, SETALL
_NAMES = {"shm": "SysV shared memory", "sem": "SysV semaphores", "msg": "a SysV message queue"}
_OBJECTS = Path("/proc/sysvipc")
"""The folder in which the kernel lists SysV objects; the first two columns are an object's key and its id."""


def attach(identifier: int, flags: int) -> Interpretation:
    """Return the effect of `shmat`, which attaches SysV shared memory; None if it is read-only or has no key."""
    return None if flags & _READ_ONLY else used("shm", identifier)


def control(identifier: int, command: int) -> Interpretation:
    """Return the effect of `semctl`, which controls SysV semaphores; None unless the call sets their values."""
    return used("sem", identifier) if command & ~_IPC_64 in _SETS else None


def used(kind: str, identifier: int) -> Interpretation:
    """Return the effect of using a SysV object, such as a semaphore; None if no later process can find the object.

    `kind` is shm, sem or msg.
    """
    return None if _is_private(kind, identifier) else Unseen(_NAMES[kind])


def _is_private(kind: str, identifier: int) -> bool:
    # An object without a key (IPC_PRIVATE) cannot be found by a later process.
    try:
        rows = (_OBJECTS / kind).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return False
    return any(row.split()[:2] == ["0", str(identifier)] for row in rows)
