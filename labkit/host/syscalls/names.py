"""Interpret system calls that create, move or remove names of files. A call that cannot have an effect yields None."""

import os
import stat
from pathlib import Path

from labkit.host.syscalls.calls import Arguments, CallEffect, CallKind, Interpretation
from labkit.host.syscalls.sockets import address
from labkit.host.syscalls.table import O_CREAT, O_TRUNC
from labkit.host.syscalls.tracee import Tracee

REMOVES_FOLDER, _FOLLOWS = 0x200, 0x400  # AT_REMOVEDIR, AT_SYMLINK_FOLLOW
_KEEPS_TARGET, _EXCHANGES = 1, 2  # RENAME_NOREPLACE, RENAME_EXCHANGE


def rename(tracee: Tracee, first: Arguments, second: Arguments, flags: int = 0) -> Interpretation:
    old, new = tracee.path(*first), tracee.path(*second)
    refused = flags & _KEEPS_TARGET and os.path.lexists(new)
    if refused or not os.path.lexists(old) or not _has_folder(new):
        return None
    name = "renameat2(RENAME_EXCHANGE)" if flags & _EXCHANGES else ""
    return CallEffect(CallKind.RENAME, old, new, name=name)


def link(tracee: Tracee, first: Arguments, second: Arguments, flags: int = 0) -> Interpretation:
    old, new = tracee.path(*first), tracee.path(*second)
    if flags & _FOLLOWS and Path(old).exists():
        # `old` names a descriptor, such as /proc/self/fd/5. Its file may also have a real name, or none yet.
        named = os.stat(old).st_nlink  # noqa: PTH116 - a hot path
        old = os.path.realpath(old) if named else ""
    if old and not os.path.lexists(old):
        return None
    return None if os.path.lexists(new) else CallEffect(CallKind.LINK, old, new)


def symlink(tracee: Tracee, content: int, place: Arguments) -> Interpretation:
    new = tracee.path(*place)
    if os.path.lexists(new):
        return None
    return CallEffect(CallKind.LINK, tracee.text(content), new)


def unlink(tracee: Tracee, folder: int, place: int, flags: int = 0) -> Interpretation:
    path = tracee.path(folder, place)
    if flags & REMOVES_FOLDER:
        exists = _is_folder(path) and not any(Path(path).iterdir())
        return CallEffect(CallKind.UNLINK, path, name="rmdir") if exists else None
    exists = os.path.lexists(path) and not _is_folder(path)
    return CallEffect(CallKind.UNLINK, path) if exists else None


def _is_folder(path: str) -> bool:
    return Path(path).is_dir() and not Path(path).is_symlink()


def _has_folder(path: str) -> bool:
    return Path(path).parent.is_dir()


def make(tracee: Tracee, folder: int, place: int, kind: CallKind) -> Interpretation:
    return _made(tracee.path(folder, place), kind)


def bind(tracee: Tracee, place: int, size: int) -> Interpretation:
    """Return the effect of binding a Unix socket to a path, which creates a file; None for any other socket.

    The socket's address has `size` bytes at `place` in the memory of the process.
    """
    own = address(tracee, tracee.memory(place, size))
    is_file = own is not None and own.family == "unix" and own.host.startswith("/")
    return _made(own.host, CallKind.CREATE) if own is not None and is_file else None


def _made(path: str, kind: CallKind) -> Interpretation:
    possible = _has_folder(path) and not os.path.lexists(path)
    return CallEffect(kind, path) if possible else None


def opens(tracee: Tracee, folder: int, place: int, flags: int) -> Interpretation:
    if not flags & (O_CREAT | O_TRUNC):
        return None
    path = tracee.path(folder, place)
    try:
        state = os.stat(path)  # noqa: PTH116 - a hot path
    except OSError:
        possible = flags & O_CREAT and _has_folder(path)
        return CallEffect(CallKind.CREATE, path) if possible else None
    cuts = flags & O_TRUNC and not (flags & O_CREAT and flags & os.O_EXCL)
    if cuts and stat.S_ISREG(state.st_mode):
        # If the file is empty already, this changes its times, which a later start can read.
        return CallEffect(CallKind.TRUNCATE, os.path.realpath(path), size=0)
    return None
