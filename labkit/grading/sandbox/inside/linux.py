"""Linux system calls that Python 3.11 lacks, one function each. A call that fails raises `OSError` with its name."""

import ctypes
import os
from collections.abc import Callable

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)

RDONLY, NOSUID, NODEV, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_DETACH = 2

(_SET_PDEATHSIG, _SET_DUMPABLE, _SET_SECCOMP, _CAPBSET_DROP, _SET_SUBREAPER, _SET_NO_NEW_PRIVS) = 1, 4, 22, 24, 36, 38
_SECCOMP_FILTER = 2
_CAPABILITIES = 64
_CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    function: Callable[..., int] = getattr(_libc, name)
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move this process into new namespaces (`flags`); a new process namespace begins only with its next child."""
    _call("unshare", ctypes.c_int(flags))


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system, or bind-mount a folder, at `target`."""
    _call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())


def change_root(root: str) -> None:
    """Make a mounted folder the root of this mount namespace, and unmount the old root."""
    os.chdir(root)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", ctypes.c_int(_DETACH))
    os.chdir("/")


def host_name(name: str) -> None:
    """Set the host name of this namespace."""
    _call("sethostname", name.encode(), ctypes.c_size_t(len(name)))


def _control(option: int, value: int) -> None:
    _call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def die_with_parent(signal: int) -> None:
    """Ask Linux to send this process the given signal when its parent dies. A change of the user id undoes this."""
    _control(_SET_PDEATHSIG, signal)


def adopt_orphans() -> None:
    """Make this process the new parent of any descendant whose own parent dies."""
    _control(_SET_SUBREAPER, 1)


def hide_memory(*, hidden: bool = True) -> None:
    """Forbid (or, if not `hidden`, allow) other processes of this user to trace this process or read its memory."""
    _control(_SET_DUMPABLE, int(not hidden))


def filter_calls(program: object) -> None:
    """Install a seccomp(2) filter for all further system calls; `program` points to the filter (`sock_fprog`)."""
    _call("prctl", _SET_SECCOMP, ctypes.c_ulong(_SECCOMP_FILTER), program, ctypes.c_ulong(0), ctypes.c_ulong(0))


def drop_privileges() -> None:
    """Give up every capability (special right), including rights that a program started later could regain."""
    for capability in range(_CAPABILITIES):
        try:
            _control(_CAPBSET_DROP, capability)
        except OSError:  # beyond the last capability that this kernel knows
            break
    _control(_SET_NO_NEW_PRIVS, 1)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _call("capset", ctypes.byref(header), ctypes.byref(nothing))
