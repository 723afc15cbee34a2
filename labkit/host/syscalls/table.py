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
IPC_CREAT = 0o1000
MAP_SHARED, PROT_WRITE = 1, 2
FICLONE, FICLONERANGE = 0x40049409, 0x4020940D
SETS_FLAGS = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602)
"""The requests of `ioctl` that set a file's flags (as `chattr` does), project or version: FS_IOC_SETFLAGS and
FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION and FS_IOC32_SETVERSION (`include/uapi/linux/fs.h`).
"""
SET_WRITE_HINT = 1036
"""The request F_SET_RW_HINT of `fcntl`: the inode keeps the hint, and any process can read it."""
SET_MODE_FILTER, NEW_LISTENER = 1, 8
PROTECTING = frozenset({"mprotect", "pkey_mprotect"})
"""Calls that make mapped memory writable. A JVM makes thousands of them at its start, for its own memory."""


class Condition(NamedTuple):
    """A condition on the low 32 bits of an argument of a system call.

    The kernel intercepts the call only if the condition is true.
    """

    argument: int
    """The position of the argument, from 0."""
    relation: str
    """`EQUAL`: the argument is `value`. `ANY_BIT`: it has at least one of the bits of `value`."""
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


_ALWAYS = set[CallKind]()
_OPENS = {CallKind.CREATE, CallKind.TRUNCATE}
_BYTES = {CallKind.WRITE, CallKind.SEND}

_CALLS: tuple[tuple[Any, ...], ...] = (
    ({CallKind.RENAME}, "rename 82 -, renameat 264 38, renameat2 316 276"),
    ({CallKind.LINK}, "link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36"),
    ({CallKind.UNLINK}, "unlink 87 -, unlinkat 263 35, rmdir 84 -"),
    ({CallKind.MKDIR}, "mkdir 83 -, mkdirat 258 34"),
    ({CallKind.SYNC}, "fsync 74 82, fdatasync 75 83, sync 162 81, syncfs 306 267"),
    (_OPENS, "open 2 -", Condition(1, ANY_BIT, O_CREAT | O_TRUNC)),
    (_OPENS, "openat 257 56", Condition(2, ANY_BIT, O_CREAT | O_TRUNC)),
    (_OPENS, "openat2 437 437, creat 85 -"),
    ({CallKind.CREATE}, "mknod 133 -, mknodat 259 33, bind 49 200"),
    ({CallKind.TRUNCATE}, "truncate 76 45, ftruncate 77 46, fallocate 285 47"),
    ({CallKind.ATTRIBUTES}, "utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88"),
    ({CallKind.ATTRIBUTES}, "chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452"),
    ({CallKind.ATTRIBUTES}, "chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54"),
    ({CallKind.ATTRIBUTES}, "file_setattr 469 469"),
    ({CallKind.ATTRIBUTES}, "setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, setxattrat 463 463"),
    ({CallKind.ATTRIBUTES}, "removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, removexattrat 466 466"),
    (_BYTES, "write 1 64, writev 20 66, pwrite64 18 68, pwritev 296 70, pwritev2 328 287"),
    (_BYTES, "copy_file_range 326 285, sendfile 40 71, splice 275 76"),
    ({CallKind.WRITE}, "ioctl 16 29", Condition(1, EQUAL, FICLONE)),
    ({CallKind.WRITE}, "ioctl 16 29", Condition(1, EQUAL, FICLONERANGE)),
    *(({CallKind.ATTRIBUTES}, "ioctl 16 29", Condition(1, EQUAL, request)) for request in SETS_FLAGS),
    ({CallKind.ATTRIBUTES}, "fcntl 72 25", Condition(1, EQUAL, SET_WRITE_HINT)),
    ({CallKind.SEND}, "sendto 44 206, sendmsg 46 211, sendmmsg 307 269, connect 42 203, listen 50 201"),
    ({CallKind.EXIT}, "exit_group 231 94"),
    (_ALWAYS, "mmap 9 222", Condition(3, ANY_BIT, MAP_SHARED)),
    (_ALWAYS, "mprotect 10 226, pkey_mprotect 329 288", Condition(2, ANY_BIT, PROT_WRITE)),
    (_ALWAYS, "io_uring_setup 425 425, io_submit 209 2, shmat 30 196, semop 65 193, semtimedop 220 192, semctl 66 191"),
    (_ALWAYS, "msgsnd 69 189, msgrcv 70 188, mq_timedsend 242 182, mq_unlink 241 181, add_key 248 217"),
    (_ALWAYS, "shmget 29 194, semget 64 190", Condition(2, ANY_BIT, IPC_CREAT)),
    (_ALWAYS, "msgget 68 186", Condition(1, ANY_BIT, IPC_CREAT)),
    (_ALWAYS, "mq_open 240 180", Condition(1, ANY_BIT, O_CREAT)),
    (_ALWAYS, "chroot 161 51, pivot_root 155 41, mount 165 40, umount2 166 39, move_mount 429 429, setns 308 268"),
    (_ALWAYS, "sethostname 170 161, setdomainname 171 162, settimeofday 164 170, clock_settime 227 112"),
    (_ALWAYS, "seccomp 317 277", Condition(0, EQUAL, SET_MODE_FILTER), Condition(1, ANY_BIT, NEW_LISTENER)),
)
"""Every call to hold: kinds, `name NUMBER NUMBER` for each call, and the conditions on the calls of this row.

The first number is that on x86_64, the second that on aarch64; `-` means that there is no such call.
"""


def _rows(calls: str) -> list[list[str]]:
    return [each.split() for each in calls.split(", ")]


def _numbers(column: int) -> dict[str, int]:
    rows = [row for _, calls, *_ in _CALLS for row in _rows(calls)]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


QUESTIONS = tuple(
    Question(name, frozenset(kinds), conditions) for kinds, calls, *conditions in _CALLS for name, *_ in _rows(calls)
)

ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, 0x40000000, _numbers(1)),
    "aarch64": Architecture(0xC00000B7, 0, _numbers(2)),
}


def architecture() -> Architecture | None:
    """Return the architecture of this processor; None if labkit does not support it, or for a 32-bit Python."""
    return ARCHITECTURES.get(platform.machine()) if sys.maxsize > 2**32 else None


def questions(kinds: Iterable[str], numbers: dict[str, int], *, protecting: bool = True) -> list[Question]:
    """Return the system calls that the kernel must intercept, so that labkit sees all effects of these kinds.

    A `Question` has the name of a call, and conditions on its arguments. `numbers` maps the names of this processor
    architecture's calls to their numbers; calls that the architecture does not have are left out. Whatever `kinds`
    contains, the result includes the calls with effects that labkit cannot follow, such as mapping shared memory, so
    that labkit can count these calls. If `protecting` is false, the calls in `PROTECTING` (`mprotect` and
    `pkey_mprotect`, which can make mapped memory writable) are left out.
    """
    wanted = {*kinds, CallKind.EXIT}
    held = [each for each in QUESTIONS if each.name in numbers and (not each.kinds or each.kinds & wanted)]
    return [each for each in held if protecting or each.name not in PROTECTING]
