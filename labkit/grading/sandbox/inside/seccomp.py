"""Forbids system calls that allocate memory outside of every limit, and those that only help to attack the kernel.

The filter of seccomp(2) applies to this process and all its children and cannot be removed. Installing it needs
`no_new_privs` or the right CAP_SYS_ADMIN.
"""

import ctypes
import platform

from labkit.grading.sandbox.inside import linux

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000
"""The results of a seccomp filter for a system call: allow it, make it fail with EPERM, or kill the process."""
_OTHER_NUMBERS = 0x40000000
"""The smallest system call number of x32, another calling convention on x86-64, which the filter refuses."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_FORBIDDEN = {
    "memfd_create": {"x86_64": 319, "aarch64": 279},
    "memfd_secret": {"x86_64": 447, "aarch64": 447},
    "shmget": {"x86_64": 29, "aarch64": 194},
    "msgget": {"x86_64": 68, "aarch64": 186},
    "add_key": {"x86_64": 248, "aarch64": 217},
    "keyctl": {"x86_64": 250, "aarch64": 219},
    "ptrace": {"x86_64": 101, "aarch64": 117},
    "bpf": {"x86_64": 321, "aarch64": 280},
    "userfaultfd": {"x86_64": 323, "aarch64": 282},
    "perf_event_open": {"x86_64": 298, "aarch64": 241},
    "io_uring_setup": {"x86_64": 425, "aarch64": 425},
    "unshare": {"x86_64": 272, "aarch64": 97},
    "setns": {"x86_64": 308, "aarch64": 268},
    "mount": {"x86_64": 165, "aarch64": 40},
}
_SOCKETS = {"socket": {"x86_64": 41, "aarch64": 198}, "socketpair": {"x86_64": 53, "aarch64": 199}}
_FAMILIES = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16}
"""The socket families that stay within a sandbox's network namespace; others, such as vsock, could leave it."""
_FIRST_ARGUMENT = 16
"""The offset in bytes of a system call's first argument in the filter's input on little-endian machines."""
_NO_FAMILY = 0x00050061
"""The filter's result that makes a system call fail with EAFNOSUPPORT."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def forbid() -> None:
    """Make dangerous system calls, and sockets of unusual families, fail in this process and its later children.

    Raises `OSError`. On an unknown processor the function does nothing.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _ARCHITECTURES[machine]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    steps += [(_AT_LEAST, 0, 1, _OTHER_NUMBERS), (_RETURN, 0, 0, _REFUSE)]
    for numbers in _FORBIDDEN.values():
        steps += [(_EQUAL, 0, 1, numbers[machine]), (_RETURN, 0, 0, _REFUSE)]
    steps += _only_families([numbers[machine] for numbers in _SOCKETS.values()])
    steps.append((_RETURN, 0, 0, _ALLOW))
    code = b"".join(
        first.to_bytes(2, "little") + bytes([when, otherwise]) + value.to_bytes(4, "little")
        for first, when, otherwise, value in steps
    )
    memory = ctypes.create_string_buffer(code, len(code))
    linux.filter_calls(ctypes.byref(_Program(len(steps), ctypes.addressof(memory))))


def _only_families(calls: list[int]) -> list[tuple[int, int, int, int]]:
    """Return the filter's instructions that refuse sockets of all families except `_FAMILIES`.

    `calls` are the numbers of the two system calls that create sockets.
    """
    families = list(_FAMILIES.values())
    look = [(_LOAD, 0, 0, _FIRST_ARGUMENT)]
    look += [(_EQUAL, len(families) - number, 0, family) for number, family in enumerate(families)]
    look.append((_RETURN, 0, 0, _NO_FAMILY))
    first, second = calls
    return [(_EQUAL, 1, 0, first), (_EQUAL, 0, len(look), second), *look]
