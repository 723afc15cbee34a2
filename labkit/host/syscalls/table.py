"""The system calls that the kernel must hold: their numbers on each architecture, and conditions on their arguments.

If a condition is false, the kernel need not hold the call. The numbers come from the kernel's own tables
(`arch/x86/entry/syscalls/syscall_64.tbl` and, for aarch64, `include/uapi/asm-generic/unistd.h`).
"""

import platform
import sys
from typing import NamedTuple

from labkit.host.syscalls.calls import CallKind

ANY_BIT, EQUAL = "any bit", "equal"

O_CREAT, O_TRUNC = 0o100, 0o1000
MAP_SHARED, PROT_WRITE = 1, 2
FICLONE, FICLONERANGE = 0x40049409, 0x4020940D
SET_MODE_FILTER, NEW_LISTENER = 1, 8


class Condition(NamedTuple):
    """A condition on the low 32 bits of a call's argument; if it is false, the call happens without being held."""

    argument: int
    relation: str
    value: int


class Question(NamedTuple):
    """A system call that the kernel is asked to hold."""

    name: str
    kinds: frozenset[CallKind]
    """The kinds of effects that the call may have; if empty, it is held in every run."""
    conditions: tuple[Condition, ...] = ()
    """The conditions on the arguments under which the call is held; all of them must be true."""


class Architecture(NamedTuple):
    """The numbers of a processor architecture that a filter of system calls needs."""

    audit: int
    """The kernel's AUDIT_ARCH_* value, which distinguishes the architecture's own calls from 32-bit ones."""
    foreign: int
    """The first call number that belongs to another table (x32); 0 if there is none."""
    numbers: dict[str, int]


_FILES = frozenset({CallKind.CREATE, CallKind.TRUNCATE})
_BYTES = frozenset({CallKind.WRITE, CallKind.SEND})
_SEND = frozenset({CallKind.SEND})
_CLONES = tuple(
    Question("ioctl", frozenset({CallKind.WRITE}), (Condition(1, EQUAL, request),))
    for request in (FICLONE, FICLONERANGE)
)


def _all(kind: CallKind, *names: str) -> tuple[Question, ...]:
    return tuple(Question(name, frozenset({kind})) for name in names)


QUESTIONS: tuple[Question, ...] = (
    *_all(CallKind.RENAME, "rename", "renameat", "renameat2"),
    *_all(CallKind.LINK, "link", "linkat", "symlink", "symlinkat"),
    *_all(CallKind.UNLINK, "unlink", "unlinkat", "rmdir"),
    *_all(CallKind.MKDIR, "mkdir", "mkdirat"),
    *_all(CallKind.SYNC, "fsync", "fdatasync", "sync", "syncfs"),
    Question("open", _FILES, (Condition(1, ANY_BIT, O_CREAT | O_TRUNC),)),
    Question("openat", _FILES, (Condition(2, ANY_BIT, O_CREAT | O_TRUNC),)),
    Question("openat2", _FILES),
    Question("creat", _FILES),
    *_all(CallKind.CREATE, "mknod", "mknodat"),
    *_all(CallKind.TRUNCATE, "truncate", "ftruncate", "fallocate"),
    *_all(CallKind.ATTRIBUTES, "utime", "utimes", "futimesat", "utimensat"),
    *_all(CallKind.ATTRIBUTES, "chmod", "fchmod", "fchmodat", "fchmodat2"),
    *_all(CallKind.ATTRIBUTES, "chown", "fchown", "lchown", "fchownat"),
    *_all(CallKind.ATTRIBUTES, "setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *_all(CallKind.ATTRIBUTES, "removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
    *(Question(name, _BYTES) for name in ("write", "writev", "pwrite64")),
    *(Question(name, _BYTES) for name in ("pwritev", "pwritev2")),
    *(Question(name, _BYTES) for name in ("copy_file_range", "sendfile", "splice")),
    *_CLONES,
    *(Question(name, _SEND) for name in ("sendto", "sendmsg", "sendmmsg")),
    *(Question(name, _SEND) for name in ("connect", "listen")),
    Question("exit_group", frozenset({CallKind.EXIT})),
    Question("mmap", frozenset(), (Condition(2, ANY_BIT, PROT_WRITE), Condition(3, ANY_BIT, MAP_SHARED))),
    Question("io_uring_setup", frozenset()),
    Question("io_submit", frozenset()),
    *(Question(name, frozenset()) for name in ("shmat", "semop", "semtimedop", "semctl", "msgsnd", "msgrcv")),
    *(Question(name, frozenset()) for name in ("mq_timedsend", "add_key")),
    Question("seccomp", frozenset(), (Condition(0, EQUAL, SET_MODE_FILTER), Condition(1, ANY_BIT, NEW_LISTENER))),
)

_X86_64 = {
    "write": 1,
    "open": 2,
    "mmap": 9,
    "ioctl": 16,
    "pwrite64": 18,
    "writev": 20,
    "shmat": 30,
    "sendfile": 40,
    "connect": 42,
    "sendto": 44,
    "sendmsg": 46,
    "listen": 50,
    "semop": 65,
    "semctl": 66,
    "msgsnd": 69,
    "msgrcv": 70,
    "fsync": 74,
    "fdatasync": 75,
    "truncate": 76,
    "ftruncate": 77,
    "rename": 82,
    "mkdir": 83,
    "rmdir": 84,
    "creat": 85,
    "link": 86,
    "unlink": 87,
    "symlink": 88,
    "chmod": 90,
    "fchmod": 91,
    "chown": 92,
    "fchown": 93,
    "lchown": 94,
    "utime": 132,
    "mknod": 133,
    "prctl": 157,
    "sync": 162,
    "setxattr": 188,
    "lsetxattr": 189,
    "fsetxattr": 190,
    "removexattr": 197,
    "lremovexattr": 198,
    "fremovexattr": 199,
    "io_submit": 209,
    "semtimedop": 220,
    "exit_group": 231,
    "utimes": 235,
    "mq_timedsend": 242,
    "add_key": 248,
    "openat": 257,
    "mkdirat": 258,
    "mknodat": 259,
    "fchownat": 260,
    "futimesat": 261,
    "unlinkat": 263,
    "renameat": 264,
    "linkat": 265,
    "symlinkat": 266,
    "fchmodat": 268,
    "splice": 275,
    "utimensat": 280,
    "fallocate": 285,
    "pwritev": 296,
    "syncfs": 306,
    "sendmmsg": 307,
    "renameat2": 316,
    "seccomp": 317,
    "copy_file_range": 326,
    "pwritev2": 328,
    "io_uring_setup": 425,
    "openat2": 437,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
}
_AARCH64 = {
    "io_submit": 2,
    "setxattr": 5,
    "lsetxattr": 6,
    "fsetxattr": 7,
    "removexattr": 14,
    "lremovexattr": 15,
    "fremovexattr": 16,
    "ioctl": 29,
    "mknodat": 33,
    "mkdirat": 34,
    "unlinkat": 35,
    "symlinkat": 36,
    "linkat": 37,
    "renameat": 38,
    "truncate": 45,
    "ftruncate": 46,
    "fallocate": 47,
    "fchmod": 52,
    "fchmodat": 53,
    "fchownat": 54,
    "fchown": 55,
    "openat": 56,
    "write": 64,
    "writev": 66,
    "pwrite64": 68,
    "pwritev": 70,
    "sendfile": 71,
    "splice": 76,
    "sync": 81,
    "fsync": 82,
    "fdatasync": 83,
    "utimensat": 88,
    "exit_group": 94,
    "prctl": 167,
    "mq_timedsend": 182,
    "msgrcv": 188,
    "msgsnd": 189,
    "semctl": 191,
    "semtimedop": 192,
    "semop": 193,
    "shmat": 196,
    "listen": 201,
    "connect": 203,
    "sendto": 206,
    "sendmsg": 211,
    "add_key": 217,
    "mmap": 222,
    "syncfs": 267,
    "sendmmsg": 269,
    "renameat2": 276,
    "seccomp": 277,
    "copy_file_range": 285,
    "pwritev2": 287,
    "io_uring_setup": 425,
    "openat2": 437,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
}

ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, 0x40000000, _X86_64),
    "aarch64": Architecture(0xC00000B7, 0, _AARCH64),
}


def architecture() -> Architecture | None:
    """Return the architecture of this processor; None if it is not in the table, or for a 32-bit Python."""
    return ARCHITECTURES.get(platform.machine()) if sys.maxsize > 2**32 else None


def questions(kinds: frozenset[CallKind], numbers: dict[str, int]) -> list[Question]:
    """Return the calls to hold in a run that is interested in these kinds of effects.

    They include calls whose effects cannot be followed, so that these can be counted. `numbers` are the calls that the
    architecture has.
    """
    return [
        question
        for question in QUESTIONS
        if question.name in numbers and (not question.kinds or question.kinds & (kinds | {CallKind.EXIT}))
    ]
