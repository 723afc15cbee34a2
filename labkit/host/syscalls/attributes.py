"""Interpret system calls that change a file's times, mode, owner, flags or extended attributes.

A call that would change nothing, or that would fail, has no effect. labkit does not compare times and flags, because
most programs set new ones, so a call that sets them always counts as an effect.
"""

import errno
import os
import stat
import struct
from typing import NamedTuple

from labkit.host.syscalls.calls import HERE, Arguments, CallEffect, CallKind, Interpretation
from labkit.host.syscalls.tracee import Tracee, WillFail, signed

KEEPS_LINK, _IS_DESCRIPTOR = 0x100, 0x1000  # AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
_CREATES, _REPLACES = 1, 2  # XATTR_CREATE, XATTR_REPLACE
_PERMISSIONS = 0o7777
_SET_ID = stat.S_ISUID | stat.S_ISGID
_UNCHANGED = 0xFFFFFFFF
_VALUE = struct.Struct("<QII")  # struct xattr_args


class Attributed(NamedTuple):
    """The file whose times, mode, owner or other attributes a system call is about to change."""

    path: str
    """The path of the file; for a symbolic link that is not followed, that of the link."""
    place: str
    """A path by which the watcher can open the file; for a descriptor, below the process's `/proc/PID/fd`."""
    state: os.stat_result
    follows: bool
    """Whether a symbolic link at `place` is followed to the file to which it points."""


def at(tracee: Tracee, folder: int, place: int, flags: int = 0) -> Attributed:
    """Return the file whose path is at the address `place` in memory. Raises `WillFail` if there is no such file.

    A relative path refers to the descriptor `folder`; `flags` are the call's AT_* flags.
    """
    name = tracee.text(place)
    if not name:
        if not flags & _IS_DESCRIPTOR:
            raise WillFail
        return opened(tracee, folder)
    path = tracee.absolute(folder, name)
    follows = not flags & KEEPS_LINK
    return _attributed(os.path.realpath(path) if follows else path, path, follows=follows)


def opened(tracee: Tracee, descriptor: int) -> Attributed:
    """Return the file that the thread has open as `descriptor`. Raises `WillFail` if the file has no name."""
    if signed(descriptor) == HERE:
        path = tracee.absolute(HERE, ".")
        return _attributed(os.path.realpath(path), path, follows=True)
    path = tracee.opened(descriptor).path
    return _attributed(path, f"/proc/{tracee.thread}/fd/{signed(descriptor)}", follows=True)


def _attributed(path: str, place: str, *, follows: bool) -> Attributed:
    state = os.stat(place, follow_symlinks=follows)  # noqa: PTH116 - a hot path
    lasts = stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode) or stat.S_ISLNK(state.st_mode)
    if not path.startswith("/") or not lasts:
        raise WillFail
    return Attributed(path, place, state, follows)


def _effect(file: Attributed) -> CallEffect:
    return CallEffect(CallKind.ATTRIBUTES, file.path)


def times(tracee: Tracee, folder: int, place: int, flags: int = 0) -> Interpretation:
    """Return the effect of `utimensat`, which sets the times of a file.

    `place` is the address of the file's path. If it is 0, the file is the one that is open as `folder`.
    """
    return _effect(at(tracee, folder, place, flags) if place else opened(tracee, folder))


def mode(file: Attributed, wanted: int) -> Interpretation:
    changes = stat.S_IMODE(file.state.st_mode) != wanted & _PERMISSIONS
    return _effect(file) if changes else None


def owner(file: Attributed, user: int, group: int) -> Interpretation:
    """Return the effect of `chown`; None if the call changes no owner, no group and no set-id bit."""
    user, group = user & _UNCHANGED, group & _UNCHANGED
    same = user in (_UNCHANGED, file.state.st_uid) and group in (_UNCHANGED, file.state.st_gid)
    clears = stat.S_ISREG(file.state.st_mode) and file.state.st_mode & _SET_ID
    return None if same and not clears else _effect(file)


def flags(file: Attributed) -> Interpretation:
    return _effect(file)


def set_extended(tracee: Tracee, file: Attributed, of: Arguments) -> Interpretation:
    """Return the effect of `setxattr`. `of` has the addresses of name and value, the value's size, and the flags."""
    name, value, size, flags = of
    there = _extended(file, tracee.text(name))
    if there is None:
        return None if flags & _REPLACES else _effect(file)
    same = there == (tracee.memory(value, size) if size else b"")
    return None if flags & _CREATES or same else _effect(file)


def set_extended_at(tracee: Tracee, of: Arguments) -> Interpretation:
    """Return the effect of `setxattrat`, whose arguments include a struct with the value, its size and flags."""
    value = _VALUE.unpack(tracee.exactly(of[4], _VALUE.size))
    return set_extended(tracee, at(tracee, of[0], of[1], of[2]), (of[3], *value))


def remove_extended(tracee: Tracee, file: Attributed, name: int) -> Interpretation:
    return None if _extended(file, tracee.text(name)) is None else _effect(file)


def _extended(file: Attributed, name: str) -> bytes | None:
    try:
        return os.getxattr(file.place, name, follow_symlinks=file.follows)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return None
        if error.errno in (errno.EACCES, errno.EPERM):
            return b"\0unreadable"  # counts as different from every value
        raise WillFail from error
