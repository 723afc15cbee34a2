"""Lists the system calls that the kernel must hold: their numbers on each architecture, and conditions on arguments.

If a condition is false, the kernel need not hold the call. The numbers come from the kernel's own tables
(`arch/x86/entry/syscalls/syscall_64.tbl` and, for aarch64, `include/uapi/asm-generic/unistd.h`).
"""

import platform
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from labkit.host.syscalls.calls import CallKind

ANY_BIT, EQUAL = "any bit", "equal"

O_CREAT, O_TRUNC = 0o100, 0o1000
MAP_SHARED, PROT_WRITE = 1, 2
FICLONE, FICLONERANGE = 0x40049409, 0x4020940D
SETS_FLAGS = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602)
"""The requests of `ioctl` that set a file's flags (as `chattr` does), project or version: FS_IOC_SETFLAGS and
FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION and FS_IOC32_SETVERSION (`include/uapi/linux/fs.h`).
"""
SET_MODE_FILTER, NEW_LISTENER = 1, 8


class Condition(NamedTuple):
    """A condition on the low 32 bits of a system call's argument.

    The kernel intercepts the call only if the condition is true.
    """

    argument: int
    relation: str
    value: int


class Question(NamedTuple):
    """A system call that the kernel has to intercept if the call's arguments fulfil all `conditions`."""

    name: str
    kinds: frozenset[CallKind]
    """The kinds of effects that the call may have; if empty, the call is held in every run."""
    conditions: Sequence[Condition] = ()
    """The conditions on the arguments under which the call is held; all of them must be true."""


class Architecture(NamedTuple):
    """The numbers of the system calls on one processor architecture, such as x86_64."""

    audit: int
    """The kernel's AUDIT_ARCH_* value, which distinguishes the architecture's own calls from 32-bit ones."""
    foreign: int
    """The first call number that belongs to another table (x32); 0 if there is none."""
    numbers: dict[str, int]


_ALWAYS = frozenset[CallKind]()
_OPENS = {CallKind.CREATE, CallKind.TRUNCATE}
_BYTES = {CallKind.WRITE, CallKind.SEND}

_CALLS: tuple[tuple[Any, ...], ...] = (
    ("rename", 82, None, {CallKind.RENAME}),
    ("renameat", 264, 38, {CallKind.RENAME}),
    ("renameat2", 316, 276, {CallKind.RENAME}),
    ("link", 86, None, {CallKind.LINK}),
    ("linkat", 265, 37, {CallKind.LINK}),
    ("symlink", 88, None, {CallKind.LINK}),
    ("symlinkat", 266, 36, {CallKind.LINK}),
    ("unlink", 87, None, {CallKind.UNLINK}),
    ("unlinkat", 263, 35, {CallKind.UNLINK}),
    ("rmdir", 84, None, {CallKind.UNLINK}),
    ("mkdir", 83, None, {CallKind.MKDIR}),
    ("mkdirat", 258, 34, {CallKind.MKDIR}),
    ("fsync", 74, 82, {CallKind.SYNC}),
    ("fdatasync", 75, 83, {CallKind.SYNC}),
    ("sync", 162, 81, {CallKind.SYNC}),
    ("syncfs", 306, 267, {CallKind.SYNC}),
    ("open", 2, None, _OPENS, Condition(1, ANY_BIT, O_CREAT | O_TRUNC)),
    ("openat", 257, 56, _OPENS, Condition(2, ANY_BIT, O_CREAT | O_TRUNC)),
    ("openat2", 437, 437, _OPENS),
    ("creat", 85, None, _OPENS),
    ("mknod", 133, None, {CallKind.CREATE}),
    ("mknodat", 259, 33, {CallKind.CREATE}),
    ("truncate", 76, 45, {CallKind.TRUNCATE}),
    ("ftruncate", 77, 46, {CallKind.TRUNCATE}),
    ("fallocate", 285, 47, {CallKind.TRUNCATE}),
    ("utime", 132, None, {CallKind.ATTRIBUTES}),
    ("utimes", 235, None, {CallKind.ATTRIBUTES}),
    ("futimesat", 261, None, {CallKind.ATTRIBUTES}),
    ("utimensat", 280, 88, {CallKind.ATTRIBUTES}),
    ("chmod", 90, None, {CallKind.ATTRIBUTES}),
    ("fchmod", 91, 52, {CallKind.ATTRIBUTES}),
    ("fchmodat", 268, 53, {CallKind.ATTRIBUTES}),
    ("fchmodat2", 452, 452, {CallKind.ATTRIBUTES}),
    ("chown", 92, None, {CallKind.ATTRIBUTES}),
    ("fchown", 93, 55, {CallKind.ATTRIBUTES}),
    ("lchown", 94, None, {CallKind.ATTRIBUTES}),
    ("fchownat", 260, 54, {CallKind.ATTRIBUTES}),
    ("setxattr", 188, 5, {CallKind.ATTRIBUTES}),
    ("lsetxattr", 189, 6, {CallKind.ATTRIBUTES}),
    ("fsetxattr", 190, 7, {CallKind.ATTRIBUTES}),
    ("setxattrat", 463, 463, {CallKind.ATTRIBUTES}),
    ("removexattr", 197, 14, {CallKind.ATTRIBUTES}),
    ("lremovexattr", 198, 15, {CallKind.ATTRIBUTES}),
    ("fremovexattr", 199, 16, {CallKind.ATTRIBUTES}),
    ("removexattrat", 466, 466, {CallKind.ATTRIBUTES}),
    ("write", 1, 64, _BYTES),
    ("writev", 20, 66, _BYTES),
    ("pwrite64", 18, 68, _BYTES),
    ("pwritev", 296, 70, _BYTES),
    ("pwritev2", 328, 287, _BYTES),
    ("copy_file_range", 326, 285, _BYTES),
    ("sendfile", 40, 71, _BYTES),
    ("splice", 275, 76, _BYTES),
    ("ioctl", 16, 29, {CallKind.WRITE}, Condition(1, EQUAL, FICLONE)),
    ("ioctl", 16, 29, {CallKind.WRITE}, Condition(1, EQUAL, FICLONERANGE)),
    *(("ioctl", 16, 29, {CallKind.ATTRIBUTES}, Condition(1, EQUAL, request)) for request in SETS_FLAGS),
    ("sendto", 44, 206, {CallKind.SEND}),
    ("sendmsg", 46, 211, {CallKind.SEND}),
    ("sendmmsg", 307, 269, {CallKind.SEND}),
    ("connect", 42, 203, {CallKind.SEND}),
    ("listen", 50, 201, {CallKind.SEND}),
    ("exit_group", 231, 94, {CallKind.EXIT}),
    ("mmap", 9, 222, _ALWAYS, Condition(2, ANY_BIT, PROT_WRITE), Condition(3, ANY_BIT, MAP_SHARED)),
    ("io_uring_setup", 425, 425, _ALWAYS),
    ("io_submit", 209, 2, _ALWAYS),
    ("shmat", 30, 196, _ALWAYS),
    ("semop", 65, 193, _ALWAYS),
    ("semtimedop", 220, 192, _ALWAYS),
    ("semctl", 66, 191, _ALWAYS),
    ("msgsnd", 69, 189, _ALWAYS),
    ("msgrcv", 70, 188, _ALWAYS),
    ("mq_timedsend", 242, 182, _ALWAYS),
    ("add_key", 248, 217, _ALWAYS),
    ("seccomp", 317, 277, _ALWAYS, Condition(0, EQUAL, SET_MODE_FILTER), Condition(1, ANY_BIT, NEW_LISTENER)),
)
"""Every call to hold: name, number on x86_64 and on aarch64 (None: no such call), kinds, and conditions."""

QUESTIONS = tuple(Question(name, frozenset(kinds), conditions) for name, _, _, kinds, *conditions in _CALLS)

ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, 0x40000000, {name: number for name, number, *_ in _CALLS if number}),
    "aarch64": Architecture(0xC00000B7, 0, {name: number for name, _, number, *_ in _CALLS if number}),
}


def architecture() -> Architecture | None:
    """Return the architecture of this processor; None if labkit does not support it, or for a 32-bit Python."""
    return ARCHITECTURES.get(platform.machine()) if sys.maxsize > 2**32 else None


def questions(kinds: Iterable[str], numbers: dict[str, int]) -> list[Question]:
    """Return the system calls that the kernel must intercept, so that labkit sees all effects of these kinds.

    `numbers` maps the names of this processor architecture's calls to their numbers; calls that the architecture does
    not have are left out. Calls whose effects labkit cannot follow are always included, because labkit counts them.
    """
    wanted = {*kinds, CallKind.EXIT}
    return [each for each in QUESTIONS if each.name in numbers and (not each.kinds or each.kinds & wanted)]
