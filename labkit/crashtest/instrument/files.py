"""Records changes of files by a user's Python code: created, written, synced, renamed, linked, removed.

A file that the user's code opens for writing becomes a file object whose every `write` is a system call, so that each
is recorded. Content that is still in a buffer has had no effect, and a crash loses it.
"""

import builtins
import functools
import io
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder
from labkit.crashtest.project import Project

_open, _fdopen_flags = io.open, os.O_CREAT | os.O_TRUNC
_fstat, _exists = os.fstat, os.path.exists

CALLS = {
    "rename": Kind.RENAME,
    "replace": Kind.RENAME,
    "link": Kind.LINK,
    "symlink": Kind.LINK,
    "unlink": Kind.UNLINK,
    "remove": Kind.UNLINK,
    "rmdir": Kind.UNLINK,
    "mkdir": Kind.MKDIR,
    "truncate": Kind.WRITE,
}
"""Functions of `os` that take the name of the file that they change; a rename or a link is recorded with
the new name.
"""

DESCRIPTORS = {
    "write": Kind.WRITE,
    "pwrite": Kind.WRITE,
    "writev": Kind.WRITE,
    "sendfile": Kind.WRITE,
    "ftruncate": Kind.WRITE,
    "fsync": Kind.FSYNC,
    "fdatasync": Kind.FSYNC,
}
"""Functions of `os` whose first argument is the descriptor of the file that they change, with the kind of effect."""


def instrument_files() -> None:
    """Replace `open` and the functions of `os` that write by versions that record their effects."""
    builtins.open = io.open = open_recorded
    for name, kind in CALLS.items():
        setattr(os, name, _around(getattr(os, name), kind))
    for name, kind in DESCRIPTORS.items():
        if hasattr(os, name):
            setattr(os, name, _around_descriptor(getattr(os, name), kind))
    os.open = _around_open(os.open)


class RecordedFile(io.FileIO):
    """An unbuffered file object that records each write as an effect."""

    def write(self, content: Any, /) -> int:
        with recorder.effect(Kind.WRITE, self.name):
            return super().write(content)

    def truncate(self, size: int | None = None, /) -> int:
        with recorder.effect(Kind.WRITE, self.name):
            return super().truncate(size)


@functools.wraps(_open)
def open_recorded(  # noqa: PLR0917  # the signature of open
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,  # noqa: FBT002  # a parameter of open
    opener: Any = None,
) -> Any:
    """Open a file like `open`; if the user's code opens it for writing, the recorder records its writes."""
    piped = isinstance(file, int) and not _on_disk(file)
    if piped or not _writes(mode) or not _ours():
        return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    raw_mode = "".join(letter for letter in mode if letter in "rwxa+")
    binary = "b" in mode
    # To open a file that is there, without emptying it, changes nothing; to create or
    # empty one is an effect.
    if isinstance(file, int) or (_exists(file) and "w" not in mode):
        raw = RecordedFile(file, raw_mode, closefd, opener)
    else:
        with recorder.effect(Kind.CREATE, os.fspath(file)):
            raw = RecordedFile(file, raw_mode, closefd, opener)
    if buffering == 0:
        return raw
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    buffered = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
    if binary:
        return buffered
    text = io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)
    text.mode = mode  # type: ignore[misc]  # the stubs call it read-only; `open` sets it, too
    return text


def _writes(mode: str) -> bool:
    return any(letter in mode for letter in "wxa+")


def _ours() -> bool:
    """Return whether code of the user's project is on the call stack, so that its write counts."""
    frame = sys._getframe(2)  # noqa: SLF001  # the one way to it
    return any(project.line(frame)[1] for project in watched)


watched: set[Project] = set()
"""The users' projects whose code has run or will run in this process."""


def _around(function: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    @functools.wraps(function)
    def recorded(*arguments: Any, **named: Any) -> Any:
        names = [argument for argument in arguments[:2] if isinstance(argument, str | os.PathLike)]
        target = os.fspath(names[-1]) if names else "?"
        with recorder.effect(kind, target):
            return function(*arguments, **named)

    return recorded


def _around_descriptor(function: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    @functools.wraps(function)
    def recorded(descriptor: Any, *arguments: Any, **named: Any) -> Any:
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        if not _on_disk(number):
            return function(descriptor, *arguments, **named)
        with recorder.effect(kind, _name(number)):
            return function(descriptor, *arguments, **named)

    return recorded


def _around_open(function: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(function)
    def recorded(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        if not flags & _fdopen_flags or (_exists(path) and not flags & os.O_TRUNC):
            return function(path, flags, *arguments, **named)
        with recorder.effect(Kind.CREATE, os.fspath(path)):
            return function(path, flags, *arguments, **named)

    return recorded


def _on_disk(descriptor: int) -> bool:
    """Return whether a descriptor belongs to a regular file or a folder; pipes and sockets keep nothing durable."""
    try:
        mode = _fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _name(descriptor: int) -> str:
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:
        return f"file {descriptor}"
