"""Read the memory, descriptors and folders of a thread whose system call the kernel holds.

Nothing is cached between two calls, because descriptors are reopened and folders change.
"""

import errno
import os
import stat
import struct
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from labkit.host.syscalls.calls import HERE

_PAGE = 4096
_LONGEST_PATH = 4096
_MOST_VECTORS = 1024
_VECTOR = struct.Struct("<QQ")
_DELETED = " (deleted)"

_O_APPEND, _O_DSYNC, _O_ACCMODE = 0o2000, 0o10000, 0o3
_ITSELF = {
    "/proc/self": "",
    "/proc/thread-self": "",
    "/dev/fd": "/fd",
    "/dev/stdin": "/fd/0",
    "/dev/stdout": "/fd/1",
    "/dev/stderr": "/fd/2",
}
"""Paths that mean a different file in each process, each with the path below `/proc/PID` that means the same."""


class Unreadable(Exception):
    """Raised if a process forbids others to read its memory (not dumpable), so that its call's effect is unknown."""


class WillFail(Exception):
    """Raised if an intercepted call would fail anyway, for example because a descriptor is closed or a path missing."""


class Opened(NamedTuple):
    """The file, folder, socket or other object that a descriptor of a watched process refers to."""

    mode: int
    inode: int
    device: int
    size: int
    path: str
    """The path of a file or folder that still has a name; otherwise empty."""

    @property
    def is_file(self) -> bool:
        """Return whether this is a regular file with a name. A file without a name is lost when its process ends."""
        return stat.S_ISREG(self.mode) and bool(self.path)

    @property
    def is_socket(self) -> bool:
        return stat.S_ISSOCK(self.mode)


class Cursor(NamedTuple):
    """The position at which a descriptor reads or writes next, and the flags with which its file was opened."""

    position: int
    appends: bool
    synced: bool
    writes: bool
    """Whether the file was opened for writing."""


class Tracee:
    """A thread whose system call is intercepted. The methods read the thread's memory, and what it has open."""

    def __init__(self, thread: int) -> None:
        self.thread = thread

    @cached_property
    def process(self) -> int:
        """Return the id of the process to which the thread belongs."""
        try:
            with open(f"/proc/{self.thread}/status", "rb") as file:  # noqa: PTH123 - a hot path
                for line in file:
                    if line.startswith(b"Tgid:"):
                        return int(line[5:])
        except OSError:
            pass
        return self.thread

    def memory(self, address: int, size: int) -> bytes:
        """Return up to `size` bytes of the thread's memory. Raises `Unreadable`, or `WillFail` for a wrong address."""
        try:
            descriptor = os.open(f"/proc/{self.thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise _failure_of(error) from error
        try:
            return os.pread(descriptor, size, address)
        except (OSError, OverflowError) as error:
            raise WillFail from error
        finally:
            os.close(descriptor)

    def exactly(self, address: int, size: int) -> bytes:
        """Return exactly `size` bytes of memory. Raises `WillFail` if there are fewer, and the errors of `memory`."""
        raw = self.memory(address, size)
        if len(raw) < size:
            raise WillFail
        return raw

    def number(self, address: int) -> int:
        """Return the 64-bit number at this address of the thread's memory."""
        return int.from_bytes(self.exactly(address, 8), "little")

    def position(self, address: int) -> int | None:
        """Return the file position stored at `address`, a pointer among a call's arguments; None for a null pointer."""
        return self.number(address) if address else None

    def text(self, address: int) -> str:
        """Return the C string at this address of the thread's memory. Raises the errors of `memory`."""
        pieces = b""
        while len(pieces) < _LONGEST_PATH:
            place = address + len(pieces)
            piece = self.memory(place, _PAGE - place % _PAGE)
            text, zero, _ = piece.partition(b"\0")
            pieces += text
            if zero:
                return os.fsdecode(pieces)
            if not piece:
                break
        raise WillFail

    def vectors(self, address: int, count: int) -> list[tuple[int, int]]:
        """Return an (address, size) pair for each of the `count` buffers in an array of `struct iovec`."""
        raw = self.memory(address, _VECTOR.size * min(count, _MOST_VECTORS))
        complete = len(raw) - len(raw) % _VECTOR.size
        return list(_VECTOR.iter_unpack(raw[:complete]))

    def gather(self, pieces: list[tuple[int, int]]) -> bytes | None:
        """Return the joined bytes of buffers, each (address, size), or None if one cannot be read completely."""
        try:
            content = b"".join(self.memory(*piece) for piece in pieces)
        except WillFail:
            return None
        return content if len(content) == sum(size for _, size in pieces) else None

    def opened(self, descriptor: int) -> Opened:
        """Return what a descriptor refers to, such as a file or a socket.

        Raises `WillFail` if the descriptor is closed, and `Unreadable` if labkit may not look into the process.
        """
        place = f"/proc/{self.thread}/fd/{signed(descriptor)}"
        try:
            state = os.stat(place)  # noqa: PTH116 - a hot path
            named = state.st_nlink and not stat.S_ISSOCK(state.st_mode)
            path = os.readlink(place) if named else ""  # noqa: PTH115 - a hot path
        except OSError as error:
            raise _failure_of(error) from error
        path = "" if path.endswith(_DELETED) else path  # the file still has another name, but which is unknown
        return Opened(state.st_mode, state.st_ino, state.st_dev, state.st_size, path)

    def cursor(self, descriptor: int) -> Cursor:
        """Return the position and the flags of a descriptor. Raises the errors of `opened`."""
        place = f"/proc/{self.thread}/fdinfo/{signed(descriptor)}"
        try:
            with open(place, "rb") as file:  # noqa: PTH123 - a hot path
                lines = dict(line.split(b":", 1) for line in file if b":" in line)
        except OSError as error:
            raise _failure_of(error) from error
        flags = int(lines[b"flags"], 8)
        writes = bool(flags & _O_ACCMODE)
        return Cursor(int(lines[b"pos"]), bool(flags & _O_APPEND), bool(flags & _O_DSYNC), writes)

    def shared_files(self, address: int, size: int) -> list[str]:
        """Return the files mapped (MAP_SHARED) into this part of memory. Raises the same errors as `self.opened`."""
        try:
            lines = [line.split(None, 5) for line in Path(f"/proc/{self.thread}/maps").read_bytes().splitlines()]
        except OSError as error:
            raise _failure_of(error) from error
        paths = []
        for place, flags, _, _, _, *path in lines:
            begin, end = (int(each, 16) for each in place.split(b"-"))
            if flags.endswith(b"s") and begin < address + size and address < end and path:
                paths.append(os.fsdecode(path[0]))
        return [path for path in paths if path.startswith("/") and not path.endswith(_DELETED)]

    def path(self, folder: int, address: int) -> str:
        """Return the path that is stored at `address` in the thread's memory, made absolute by `absolute`."""
        return self.absolute(folder, self.text(address))

    def absolute(self, folder: int, name: str) -> str:
        """Return the absolute path for `name`. A relative `name` refers to the folder open as descriptor `folder`.

        Symbolic links are resolved, except in the last component.
        """
        if not name:
            return self.opened(folder).path
        if not name.startswith("/"):
            own = "cwd" if signed(folder) == HERE else f"fd/{signed(folder)}"
            try:
                name = f"{os.readlink(f'/proc/{self.thread}/{own}')}/{name}"  # noqa: PTH115 - a hot path
            except OSError as error:
                raise _failure_of(error) from error
        path = PurePosixPath(self._of_itself(name))
        if path.name == "..":
            return os.path.realpath(path)
        return os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118 - a hot path

    def _of_itself(self, name: str) -> str:
        """Return `name`, but replace a beginning such as `/proc/self` or `/dev/fd` by `/proc/PID` or `/proc/PID/fd`.

        PID is the id of this thread's process, so that the path means for labkit what it means for this process.
        """
        own = f"/proc/{self.process}"
        for prefix, real in _ITSELF.items():
            if name == prefix or name.startswith(f"{prefix}/"):
                return f"{own}{real}{name.removeprefix(prefix)}"
        return name


def _failure_of(error: OSError) -> Exception:
    return Unreadable() if error.errno in (errno.EACCES, errno.EPERM) else WillFail()


def signed(value: int) -> int:
    """Return the low 32 bits of a 64-bit register as a signed C int."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
