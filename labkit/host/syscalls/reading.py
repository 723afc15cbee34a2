"""Interpret a held system call from its name and arguments, with one table of argument layouts.

A call that cannot have an effect yields None: renaming a missing file, creating an existing folder, writing to a
terminal. A call whose effects cannot be followed yields `Unseen`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from labkit.host.syscalls import attributes, names
from labkit.host.syscalls.attributes import KEEPS_LINK
from labkit.host.syscalls.calls import HERE, Arguments, CallEffect, CallKind, Interpretation, Unseen
from labkit.host.syscalls.contents import Contents
from labkit.host.syscalls.filters import FOREIGN
from labkit.host.syscalls.table import O_CREAT, O_TRUNC, SETS_FLAGS
from labkit.host.syscalls.tracee import Tracee

_OWN_PLACE = (1 << 64) - 1
"""The offset -1, which means the descriptor's own position."""
_INTEGER = (1 << 32) - 1
"""A mask for an argument of 32 bits; the upper half of its register may contain anything."""
_SHM_READ_ONLY, _IPC_64 = 0o10000, 0x100
_SETS = (16, 17)  # SETVAL, SETALL
_MESSAGE_QUEUE = "a POSIX message queue"
_MACHINE = "the name or the clock of the machine"
_MOUNTS = "a change of mounts"
_SYSV = {"shm": "SysV shared memory", "sem": "SysV semaphores", "msg": "a SysV message queue"}
_SYSV_OBJECTS = Path("/proc/sysvipc")
"""The folder in which the kernel lists SysV objects; the first two columns are an object's key and its id."""


def interpret(contents: Contents, tracee: Tracee, name: str, arguments: Arguments) -> Interpretation:
    """Return the lasting effect that an intercepted call would have, or None if it would have none.

    Raises `Unreadable` if labkit may not read the process's memory, and `WillFail` if the call would fail anyway.
    """
    return Unseen(FOREIGN) if name == FOREIGN else _SHAPES[name](contents, tracee, arguments)


def _uses(kind: str, identifier: int) -> Interpretation:
    """Interpret a call, such as `shmat`, that uses the SysV object with this id; `kind` is `shm`, `sem` or `msg`.

    If the object has a key, a later process can find it, so a program may keep state there that labkit cannot follow.
    """
    try:
        rows = (_SYSV_OBJECTS / kind).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        rows = []
    is_private = any(row.split()[:2] == ["0", str(identifier)] for row in rows)
    return None if is_private else Unseen(_SYSV[kind])


def _creates(kind: str, key: int) -> Interpretation:
    """Interpret a call, such as `shmget`, that may create a SysV object with this key.

    An object with the key 0 is private: no later process can find it.
    """
    return Unseen(_SYSV[kind]) if key else None


Shape = Callable[[Contents, Tracee, Arguments], Interpretation]


_SHAPES: Mapping[str, Shape] = {
    "rename": lambda _r, t, a: names.rename(t, (HERE, a[0]), (HERE, a[1])),
    "renameat": lambda _r, t, a: names.rename(t, a[0:2], a[2:4]),
    "renameat2": lambda _r, t, a: names.rename(t, a[0:2], a[2:4], a[4]),
    "link": lambda _r, t, a: names.link(t, (HERE, a[0]), (HERE, a[1])),
    "linkat": lambda _r, t, a: names.link(t, a[0:2], a[2:4], a[4]),
    "symlink": lambda _r, t, a: names.symlink(t, a[0], (HERE, a[1])),
    "symlinkat": lambda _r, t, a: names.symlink(t, a[0], a[1:3]),
    "unlink": lambda _r, t, a: names.unlink(t, HERE, a[0]),
    "unlinkat": lambda _r, t, a: names.unlink(t, a[0], a[1], a[2]),
    "rmdir": lambda _r, t, a: names.unlink(t, HERE, a[0], names.REMOVES_FOLDER),
    "mkdir": lambda _r, t, a: names.make(t, HERE, a[0], CallKind.MKDIR),
    "mkdirat": lambda _r, t, a: names.make(t, a[0], a[1], CallKind.MKDIR),
    "mknod": lambda _r, t, a: names.make(t, HERE, a[0], CallKind.CREATE),
    "mknodat": lambda _r, t, a: names.make(t, a[0], a[1], CallKind.CREATE),
    "fsync": lambda r, t, a: r.sync(t, a[0]),
    "fdatasync": lambda r, t, a: r.sync(t, a[0]),
    "syncfs": lambda r, t, a: r.sync(t, a[0]),
    "sync": lambda _r, _t, _a: CallEffect(CallKind.SYNC, "/"),
    "open": lambda _r, t, a: names.opens(t, HERE, a[0], a[1]),
    "openat": lambda _r, t, a: names.opens(t, a[0], a[1], a[2]),
    "openat2": lambda _r, t, a: names.opens(t, a[0], a[1], t.number(a[2])),
    "creat": lambda _r, t, a: names.opens(t, HERE, a[0], O_CREAT | O_TRUNC),
    "truncate": lambda r, t, a: r.truncate(t, a[0], a[1]),
    "ftruncate": lambda r, t, a: r.truncate_opened(t, a[0], a[1]),
    "fallocate": Contents.allocate,
    "utime": lambda _r, t, a: attributes.times(t, HERE, a[0]),
    "utimes": lambda _r, t, a: attributes.times(t, HERE, a[0]),
    "futimesat": lambda _r, t, a: attributes.times(t, a[0], a[1]),
    "utimensat": lambda _r, t, a: attributes.times(t, a[0], a[1], a[3]),
    "chmod": lambda _r, t, a: attributes.mode(attributes.at(t, HERE, a[0]), a[1]),
    "fchmod": lambda _r, t, a: attributes.mode(attributes.opened(t, a[0]), a[1]),
    "fchmodat": lambda _r, t, a: attributes.mode(attributes.at(t, a[0], a[1]), a[2]),
    "fchmodat2": lambda _r, t, a: attributes.mode(attributes.at(t, a[0], a[1], a[3]), a[2]),
    "chown": lambda _r, t, a: attributes.owner(attributes.at(t, HERE, a[0]), a[1], a[2]),
    "lchown": lambda _r, t, a: attributes.owner(attributes.at(t, HERE, a[0], KEEPS_LINK), a[1], a[2]),
    "fchown": lambda _r, t, a: attributes.owner(attributes.opened(t, a[0]), a[1], a[2]),
    "fchownat": lambda _r, t, a: attributes.owner(attributes.at(t, a[0], a[1], a[4]), a[2], a[3]),
    "file_setattr": lambda _r, t, a: attributes.flags(attributes.at(t, a[0], a[1], a[4])),
    "setxattr": lambda _r, t, a: attributes.set_extended(t, attributes.at(t, HERE, a[0]), a[1:5]),
    "lsetxattr": lambda _r, t, a: attributes.set_extended(t, attributes.at(t, HERE, a[0], KEEPS_LINK), a[1:5]),
    "fsetxattr": lambda _r, t, a: attributes.set_extended(t, attributes.opened(t, a[0]), a[1:5]),
    "setxattrat": lambda _r, t, a: attributes.set_extended_at(t, a),
    "removexattr": lambda _r, t, a: attributes.remove_extended(t, attributes.at(t, HERE, a[0]), a[1]),
    "lremovexattr": lambda _r, t, a: attributes.remove_extended(t, attributes.at(t, HERE, a[0], KEEPS_LINK), a[1]),
    "fremovexattr": lambda _r, t, a: attributes.remove_extended(t, attributes.opened(t, a[0]), a[1]),
    "removexattrat": lambda _r, t, a: attributes.remove_extended(t, attributes.at(t, a[0], a[1], a[2]), a[3]),
    "write": lambda r, t, a: r.write(t, a[0], [(a[1], a[2])]),
    "pwrite64": lambda r, t, a: r.write(t, a[0], [(a[1], a[2])], a[3]),
    "writev": lambda r, t, a: r.write(t, a[0], t.vectors(a[1], a[2])),
    "pwritev": lambda r, t, a: r.write(t, a[0], t.vectors(a[1], a[2]), a[3]),
    "pwritev2": lambda r, t, a: r.write(t, a[0], t.vectors(a[1], a[2]), None if a[3] == _OWN_PLACE else a[3], a[5]),
    "copy_file_range": lambda r, t, a: r.copy(t, (a[0], t.position(a[1])), (a[2], t.position(a[3])), a[4]),
    "sendfile": lambda r, t, a: r.copy(t, (a[1], t.position(a[2])), (a[0], None), a[3]),
    "splice": lambda r, t, a: r.copy(t, (a[0], t.position(a[1])), (a[2], t.position(a[3])), a[4]),
    "ioctl": lambda r, t, a: (
        attributes.flags(attributes.opened(t, a[0])) if a[1] & _INTEGER in SETS_FLAGS else r.clone(t, a)
    ),
    "fcntl": lambda _r, t, a: attributes.flags(attributes.opened(t, a[0])),
    "sendto": Contents.send_to,
    "sendmsg": lambda r, t, a: r.send_message(t, a[0], a[1]),
    "sendmmsg": lambda r, t, a: r.send_message(t, a[0], a[1]),
    "bind": lambda _r, t, a: names.bind(t, a[1], a[2]),
    "connect": Contents.connect,
    "listen": Contents.listen,
    "exit_group": lambda _r, _t, a: CallEffect(CallKind.EXIT, size=a[0] & 0xFF),
    "mmap": Contents.map,
    "mprotect": Contents.protect,
    "pkey_mprotect": Contents.protect,
    "io_uring_setup": lambda _r, _t, _a: Unseen("io_uring"),
    "io_submit": lambda _r, _t, _a: Unseen("io_submit"),
    "shmat": lambda _r, _t, a: None if a[2] & _SHM_READ_ONLY else _uses("shm", a[0] & _INTEGER),
    "semop": lambda _r, _t, a: _uses("sem", a[0] & _INTEGER),
    "semtimedop": lambda _r, _t, a: _uses("sem", a[0] & _INTEGER),
    "semctl": lambda _r, _t, a: _uses("sem", a[0] & _INTEGER) if a[2] & _INTEGER & ~_IPC_64 in _SETS else None,
    "msgsnd": lambda _r, _t, a: _uses("msg", a[0] & _INTEGER),
    "msgrcv": lambda _r, _t, a: _uses("msg", a[0] & _INTEGER),
    "shmget": lambda _r, _t, a: _creates("shm", a[0] & _INTEGER),
    "semget": lambda _r, _t, a: _creates("sem", a[0] & _INTEGER),
    "msgget": lambda _r, _t, a: _creates("msg", a[0] & _INTEGER),
    "mq_open": lambda _r, _t, _a: Unseen(_MESSAGE_QUEUE),
    "mq_unlink": lambda _r, _t, _a: Unseen(_MESSAGE_QUEUE),
    "mq_timedsend": lambda _r, _t, _a: Unseen(_MESSAGE_QUEUE),
    "add_key": lambda _r, _t, _a: Unseen("the kernel's keyring"),
    # From now on, a path of the process may mean another file than the same path of the watcher.
    "chroot": lambda _r, _t, _a: Unseen("chroot"),
    "pivot_root": lambda _r, _t, _a: Unseen("pivot_root"),
    "mount": lambda _r, _t, _a: Unseen(_MOUNTS),
    "umount2": lambda _r, _t, _a: Unseen(_MOUNTS),
    "move_mount": lambda _r, _t, _a: Unseen(_MOUNTS),
    "setns": lambda _r, _t, _a: Unseen("setns"),
    "sethostname": lambda _r, _t, _a: Unseen(_MACHINE),
    "setdomainname": lambda _r, _t, _a: Unseen(_MACHINE),
    "settimeofday": lambda _r, _t, _a: Unseen(_MACHINE),
    "clock_settime": lambda _r, _t, _a: Unseen(_MACHINE),
    "seccomp": lambda _r, _t, _a: Unseen("its own seccomp listener, which the kernel refuses"),
}
"""For each system call, a function that picks its arguments and interprets the call."""
