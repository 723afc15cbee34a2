"""Interpret calls that change the attributes of a file: its times, mode, owner and extended attributes.

A call that would change nothing, or that would fail, yields nothing. Times are an exception: setting them always
counts, because most programs set a time that the file did not have.
"""

import errno
import os
import stat
import struct
from typing import NamedTuple

from labkit.host.syscalls.call_effects import HERE, Arguments, CallEffect, Interpretation
from labkit.host.syscalls.calls import CallKind
from labkit.host.syscalls.tracee import Tracee, WillFail, signed

KEEPS_LINK, _IS_DESCRIPTOR = 0x100, 0x1000  # AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
_CREATES, _REPLACES = 1, 2  # XATTR_CREATE, XATTR_REPLACE
_PERMISSIONS = 0o7777
_SET_ID = stat.S_ISUID | stat.S_ISGID
_UNCHANGED = 0xFFFFFFFF
_VALUE = struct.Struct("<QII")  # struct xattr_args


class Attributed(NamedTuple):
    """The file whose attributes a call changes."""

    path: str
    """Its path; for a symbolic link that is not followed, the link's own."""
    place: str
    """A path by which the watcher reaches the file, which for a descriptor leads through the process."""
    state: os.stat_result
    follows: bool
    """Whether a symbolic link at `place` stands for the file that it points to."""


def at(tracee: Tracee, folder: int, place: int, flags: int = 0) -> Attributed:
    """Return the file that a path names. Raises `WillFail` if there is none."""
    name = tracee.text(place)
    if not name:
        if not flags & _IS_DESCRIPTOR:
            raise WillFail
        return opened(tracee, folder)
    path = tracee.absolute(folder, name)
    follows = not flags & KEEPS_LINK
    return _attributed(os.path.realpath(path) if follows else path, path, follows=follows)


def opened(tracee: Tracee, descriptor: int) -> Attributed:
    """Return the file behind a descriptor. Raises `WillFail` if it has no name."""
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
    """Interpret a change of times; without a path it concerns the descriptor's own file."""
    return _effect(at(tracee, folder, place, flags) if place else opened(tracee, folder))


def mode(file: Attributed, wanted: int) -> Interpretation:
    changes = stat.S_IMODE(file.state.st_mode) != wanted & _PERMISSIONS
    return _effect(file) if changes else None


def owner(file: Attributed, user: int, group: int) -> Interpretation:
    """Interpret a change of owner, which also clears the bits that let a program run as its owner."""
    user, group = user & _UNCHANGED, group & _UNCHANGED
    same = user in (_UNCHANGED, file.state.st_uid) and group in (_UNCHANGED, file.state.st_gid)
    clears = stat.S_ISREG(file.state.st_mode) and file.state.st_mode & _SET_ID
    return None if same and not clears else _effect(file)


def set_extended(tracee: Tracee, file: Attributed, of: Arguments) -> Interpretation:
    """Interpret the setting of an extended attribute from its name, value, size and flags."""
    name, value, size, flags = of
    there = _extended(file, tracee.text(name))
    if there is None:
        return None if flags & _REPLACES else _effect(file)
    same = there == (tracee.memory(value, size) if size else b"")
    return None if flags & _CREATES or same else _effect(file)


def set_extended_at(tracee: Tracee, of: Arguments) -> Interpretation:
    """Interpret `setxattrat`, which has the value, its size and the flags in one structure."""
    raw = tracee.memory(of[4], _VALUE.size)
    if len(raw) < _VALUE.size:
        raise WillFail
    return set_extended(tracee, at(tracee, of[0], of[1], of[2]), (of[3], *_VALUE.unpack(raw)))


def remove_extended(tracee: Tracee, file: Attributed, name: int) -> Interpretation:
    return None if _extended(file, tracee.text(name)) is None else _effect(file)


def _extended(file: Attributed, name: str) -> bytes | None:
    """Return an extended attribute, or None if the file lacks it. Raises `WillFail` if the file system has none.

    An attribute that the watcher may not read counts as different from every value.
    """
    try:
        return os.getxattr(file.place, name, follow_symlinks=file.follows)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return None
        if error.errno in (errno.EACCES, errno.EPERM):
            return b"\0unreadable"
        raise WillFail from error
