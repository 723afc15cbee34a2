"""From a held call's name and arguments to what it is about to do: one small function for each shape of arguments.

A call that cannot do anything is nothing: a rename of a file that is not there, a folder that exists, a write to a
terminal. This module must not answer a call, and must not guess: what it cannot follow it names.
"""

import os
import stat
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

from labkit.host.syscalls.calls import CallKind
from labkit.host.syscalls.filters import FOREIGN
from labkit.host.syscalls.sockets import Address, Peers, address
from labkit.host.syscalls.table import FICLONE, MAP_SHARED, O_CREAT, O_TRUNC
from labkit.host.syscalls.tracee import Opened, Tracee, WillFail

HERE = -100
"""AT_FDCWD: the folder of the process."""

_REMOVES_FOLDER, _FOLLOWS = 0x200, 0x400  # AT_REMOVEDIR, AT_SYMLINK_FOLLOW
_KEEPS_TARGET, _EXCHANGES = 1, 2  # RENAME_NOREPLACE, RENAME_EXCHANGE
_KEEPS_SIZE = 1  # FALLOC_FL_KEEP_SIZE
_ANONYMOUS = 0x20
_WRITES_DURABLY = 0x2 | 0x4  # RWF_DSYNC, RWF_SYNC
_APPENDS = 0x10  # RWF_APPEND
_RANGE = struct.Struct("<qQQQ")
_EVERYTHING = 1 << 62
_SHARING = {"bcachefs", "btrfs", "cifs", "nfs4", "ocfs2", "overlay", "xfs", "zfs"}
_OWN_PLACE = (1 << 64) - 1
_MESSAGE = struct.Struct("<QI4xQQQQI4x")

Arguments = tuple[int, ...]


class Deed(NamedTuple):
    """What a call is about to do."""

    kind: CallKind
    path: str = ""
    target: str = ""
    size: int = 0
    offset: int = -1
    content: bytes | None = None
    synced: bool = False
    name: str = ""
    """Where it says more than the call's own name."""


class Unseen(NamedTuple):
    """Something that cannot be followed from here on."""

    name: str
    path: str = ""


Found = Deed | Unseen | None


class Source(NamedTuple):
    """Where the kernel takes the bytes of a copy from."""

    descriptor: int
    pointer: int = 0
    """The address of the place in the file; 0: the descriptor's own place."""
    start: int | None = None
    """The place itself, where the call names it."""


class Reader:
    """Reads held calls of one run. It remembers which sockets lead where, and nothing else."""

    def __init__(self, output: tuple[int, int], *, contents: bool) -> None:
        """`output`: device and inode of the file that takes what the command prints, which is no effect of it."""
        self._output = output
        self._contents = contents
        self._peers = Peers()

    def read(self, tracee: Tracee, name: str, arguments: Arguments) -> Found:
        """What the call is about to do; None if it is nothing. Raises `Unreadable`, `WillFail`."""
        if name == FOREIGN:
            return Unseen(FOREIGN)
        return _SHAPES[name](self, tracee, arguments)

    # Names of files.

    def rename(
        self, tracee: Tracee, first: Arguments, second: Arguments, flags: int = 0
    ) -> Found:
        old, new = tracee.path(*first), tracee.path(*second)
        refused = flags & _KEEPS_TARGET and os.path.lexists(new)
        if refused or not os.path.lexists(old):
            return None
        name = "renameat2(RENAME_EXCHANGE)" if flags & _EXCHANGES else ""
        return Deed(CallKind.RENAME, old, new, name=name)

    def link(
        self, tracee: Tracee, first: Arguments, second: Arguments, flags: int = 0
    ) -> Found:
        old, new = tracee.path(*first), tracee.path(*second)
        if flags & _FOLLOWS and Path(old).exists():
            # A descriptor's name (/proc/self/fd/5): of a file that has no other one yet, or of one that has.
            named = os.stat(old).st_nlink  # noqa: PTH116
            old = os.path.realpath(old) if named else ""
        if old and not os.path.lexists(old):
            return None
        return None if os.path.lexists(new) else Deed(CallKind.LINK, old, new)

    def symlink(self, tracee: Tracee, content: int, place: Arguments) -> Found:
        new = tracee.path(*place)
        if os.path.lexists(new):
            return None
        return Deed(CallKind.LINK, tracee.text(content), new)

    def unlink(self, tracee: Tracee, folder: int, place: int) -> Found:
        path = tracee.path(folder, place)
        return Deed(CallKind.UNLINK, path) if os.path.lexists(path) else None

    def unlink_at(self, tracee: Tracee, of: Arguments) -> Found:
        found = self.unlink(tracee, of[0], of[1])
        if isinstance(found, Deed) and of[2] & _REMOVES_FOLDER:
            return found._replace(name="unlinkat(AT_REMOVEDIR)")
        return found

    def make(self, tracee: Tracee, folder: int, place: int, kind: CallKind) -> Found:
        path = tracee.path(folder, place)
        return None if os.path.lexists(path) else Deed(kind, path)

    # Opening.

    def open(self, tracee: Tracee, folder: int, place: int, flags: int) -> Found:
        if not flags & (O_CREAT | O_TRUNC):
            return None
        path = tracee.path(folder, place)
        try:
            state = os.stat(path)  # noqa: PTH116  (a hot path)
        except OSError:
            return Deed(CallKind.CREATE, path) if flags & O_CREAT else None
        cuts = flags & O_TRUNC and not (flags & O_CREAT and flags & os.O_EXCL)
        if cuts and stat.S_ISREG(state.st_mode) and state.st_size:
            return Deed(CallKind.TRUNCATE, os.path.realpath(path), size=0)
        return None

    def open_how(self, tracee: Tracee, of: Arguments) -> Found:
        raw = tracee.memory(of[2], 8)
        if len(raw) < 8:
            raise WillFail
        return self.open(tracee, of[0], of[1], int.from_bytes(raw, "little"))

    # What is inside a file.

    def truncate(self, tracee: Tracee, place: int, size: int) -> Found:
        path = os.path.realpath(tracee.path(HERE, place))
        try:
            state = os.stat(path)  # noqa: PTH116  (a hot path)
        except OSError:
            return None
        changes = stat.S_ISREG(state.st_mode) and state.st_size != size
        return Deed(CallKind.TRUNCATE, path, size=size) if changes else None

    def truncate_opened(self, tracee: Tracee, descriptor: int, size: int) -> Found:
        opened = tracee.opened(descriptor)
        changes = opened.is_file and opened.size != size
        return Deed(CallKind.TRUNCATE, opened.path, size=size) if changes else None

    def allocate(self, tracee: Tracee, of: Arguments) -> Found:
        descriptor, mode, offset, length = of[:4]
        opened = tracee.opened(descriptor)
        if not opened.is_file or mode == _KEEPS_SIZE:
            return None
        if mode:
            return Deed(CallKind.TRUNCATE, opened.path, size=-1)
        grown = max(opened.size, offset + length)
        changes = grown != opened.size
        return Deed(CallKind.TRUNCATE, opened.path, size=grown) if changes else None

    def write(
        self,
        tracee: Tracee,
        descriptor: int,
        pieces: list[tuple[int, int]],
        offset: int | None = None,
        flags: int = 0,
    ) -> Found:
        opened = tracee.opened(descriptor)
        size = sum(length for _, length in pieces)
        if opened.is_socket:
            return self._send(opened, size)
        if not self._counts(opened) or not size:
            return None
        place, synced = self._place(tracee, descriptor, opened, offset, flags)
        content = tracee.gather(pieces) if self._contents else None
        return Deed(
            CallKind.WRITE, opened.path, "", size, place, content, synced=synced
        )

    def copy(
        self,
        tracee: Tracee,
        source: Source,
        descriptor: int,
        most: int,
        offset: int | None = None,
    ) -> Found:
        """Bytes that the kernel moves by itself; they are never in the memory of the process."""
        opened, origin = tracee.opened(descriptor), tracee.opened(source.descriptor)
        start, size = 0, most
        if origin.is_file:
            start = self._start(tracee, source)
            size = max(0, min(most, origin.size - start))
        if opened.is_socket:
            return self._send(opened, size)
        if not self._counts(opened) or not size:
            return None
        place, synced = self._place(tracee, descriptor, opened, offset, 0)
        content = _part(origin, start, size) if self._contents else None
        return Deed(
            CallKind.WRITE, opened.path, "", size, place, content, synced=synced
        )

    def clone(self, tracee: Tracee, of: Arguments) -> Found:
        descriptor, request, argument = of[:3]
        if not _shares_blocks(tracee.opened(descriptor).path):
            return None  # refused; the program then copies
        if request & 0xFFFFFFFF == FICLONE:
            return self.copy(tracee, Source(argument), descriptor, _EVERYTHING, 0)
        raw = tracee.memory(argument, _RANGE.size)
        if len(raw) < _RANGE.size:
            raise WillFail
        source, start, size, offset = _RANGE.unpack(raw)
        origin = Source(source, start=start)
        return self.copy(tracee, origin, descriptor, size or _EVERYTHING, offset)

    @staticmethod
    def _start(tracee: Tracee, source: Source) -> int:
        """Where in its file a copy begins."""
        if source.start is not None:
            return source.start
        if source.pointer:
            return _number(tracee, source.pointer)
        return tracee.cursor(source.descriptor).position

    def _counts(self, opened: Opened) -> bool:
        return opened.is_file and (opened.device, opened.inode) != self._output

    def _place(
        self,
        tracee: Tracee,
        descriptor: int,
        opened: Opened,
        offset: int | None,
        flags: int,
    ) -> tuple[int, bool]:
        """Where the first byte goes, and whether the write is durable when it returns."""
        cursor = tracee.cursor(descriptor)
        synced = cursor.synced or bool(flags & _WRITES_DURABLY)
        if (
            cursor.appends or flags & _APPENDS
        ):  # Linux appends even at a place that is named
            return opened.size, synced
        return (cursor.position if offset is None else offset), synced

    def sync(self, tracee: Tracee, descriptor: int) -> Found:
        opened = tracee.opened(descriptor)
        real = stat.S_ISREG(opened.mode) or stat.S_ISDIR(opened.mode)
        return Deed(CallKind.SYNC, opened.path) if real and opened.path else None

    # Sockets.

    def _send(self, opened: Opened, size: int, to: Address | None = None) -> Found:
        peer = to or self._peers.of(opened.inode)
        return Deed(CallKind.SEND, "", str(peer), size) if peer and size else None

    def send_to(self, tracee: Tracee, of: Arguments) -> Found:
        to = address(tracee, tracee.memory(of[4], of[5])) if of[4] and of[5] else None
        return self._send_or_look_up(tracee.opened(of[0]), of[2], to)

    def send_message(self, tracee: Tracee, descriptor: int, place: int) -> Found:
        raw = tracee.memory(place, _MESSAGE.size)
        if len(raw) < _MESSAGE.size:
            raise WillFail
        name, length, vectors, count, *_ = _MESSAGE.unpack(raw)
        size = sum(each for _, each in tracee.vectors(vectors, count))
        to = address(tracee, tracee.memory(name, length)) if name and length else None
        return self._send_or_look_up(tracee.opened(descriptor), size, to)

    def _send_or_look_up(self, opened: Opened, size: int, to: Address | None) -> Found:
        if to is not None and to.is_name_service:
            return None
        return self._send(opened, size, to)

    def connect(self, tracee: Tracee, of: Arguments) -> Found:
        opened = tracee.opened(of[0])
        peer = address(tracee, tracee.memory(of[1], of[2]))
        self._peers.connects(tracee, opened.inode, peer)
        return None

    def listen(self, tracee: Tracee, of: Arguments) -> Found:
        self._peers.listens(tracee, tracee.opened(of[0]).inode)
        return None

    # What cannot be followed.

    def map(self, tracee: Tracee, of: Arguments) -> Found:
        if of[3] & _ANONYMOUS or not of[3] & MAP_SHARED:
            return None
        opened = tracee.opened(of[4])
        return (
            Unseen("mmap of a writable file", opened.path) if opened.is_file else None
        )


Shape = Callable[[Reader, Tracee, Arguments], Found]


def _number(tracee: Tracee, pointer: int) -> int:
    raw = tracee.memory(pointer, 8)
    if len(raw) < 8:
        raise WillFail
    return int.from_bytes(raw, "little")


def _shares_blocks(path: str) -> bool:
    """Whether the file system below a path can let two files share blocks; `cp` asks that of every one."""
    holding = [
        each
        for each in psutil.disk_partitions(all=True)
        if Path(path).is_relative_to(each.mountpoint)
    ]
    nearest = max(holding, key=lambda each: len(each.mountpoint), default=None)
    return nearest is not None and nearest.fstype in _SHARING


def _part(origin: Opened, start: int, size: int) -> bytes | None:
    """A part of a regular file as it is now; None of anything else."""
    if not origin.is_file:
        return None
    try:
        with open(origin.path, "rb") as file:  # noqa: PTH123
            file.seek(start)
            content = file.read(size)
    except OSError:
        return None
    return content if len(content) == size else None


def _whole(name: str) -> Shape:
    return lambda _reader, _tracee, _of: Unseen(name)


_SHAPES: Mapping[str, Shape] = {
    "rename": lambda r, t, a: r.rename(t, (HERE, a[0]), (HERE, a[1])),
    "renameat": lambda r, t, a: r.rename(t, a[0:2], a[2:4]),
    "renameat2": lambda r, t, a: r.rename(t, a[0:2], a[2:4], a[4]),
    "link": lambda r, t, a: r.link(t, (HERE, a[0]), (HERE, a[1])),
    "linkat": lambda r, t, a: r.link(t, a[0:2], a[2:4], a[4]),
    "symlink": lambda r, t, a: r.symlink(t, a[0], (HERE, a[1])),
    "symlinkat": lambda r, t, a: r.symlink(t, a[0], a[1:3]),
    "unlink": lambda r, t, a: r.unlink(t, HERE, a[0]),
    "unlinkat": Reader.unlink_at,
    "rmdir": lambda r, t, a: r.unlink(t, HERE, a[0]),
    "mkdir": lambda r, t, a: r.make(t, HERE, a[0], CallKind.MKDIR),
    "mkdirat": lambda r, t, a: r.make(t, a[0], a[1], CallKind.MKDIR),
    "mknod": lambda r, t, a: r.make(t, HERE, a[0], CallKind.CREATE),
    "mknodat": lambda r, t, a: r.make(t, a[0], a[1], CallKind.CREATE),
    "fsync": lambda r, t, a: r.sync(t, a[0]),
    "fdatasync": lambda r, t, a: r.sync(t, a[0]),
    "syncfs": lambda r, t, a: r.sync(t, a[0]),
    "sync": lambda _r, _t, _a: Deed(CallKind.SYNC, "/"),
    "open": lambda r, t, a: r.open(t, HERE, a[0], a[1]),
    "openat": lambda r, t, a: r.open(t, a[0], a[1], a[2]),
    "openat2": Reader.open_how,
    "creat": lambda r, t, a: r.open(t, HERE, a[0], O_CREAT | O_TRUNC),
    "truncate": lambda r, t, a: r.truncate(t, a[0], a[1]),
    "ftruncate": lambda r, t, a: r.truncate_opened(t, a[0], a[1]),
    "fallocate": Reader.allocate,
    "write": lambda r, t, a: r.write(t, a[0], [(a[1], a[2])]),
    "pwrite64": lambda r, t, a: r.write(t, a[0], [(a[1], a[2])], a[3]),
    "writev": lambda r, t, a: r.write(t, a[0], t.vectors(a[1], a[2])),
    "pwritev": lambda r, t, a: r.write(t, a[0], t.vectors(a[1], a[2]), a[3]),
    "pwritev2": lambda r, t, a: r.write(
        t, a[0], t.vectors(a[1], a[2]), None if a[3] == _OWN_PLACE else a[3], a[5]
    ),
    "copy_file_range": lambda r, t, a: r.copy(
        t, Source(a[0], a[1]), a[2], a[4], _number(t, a[3]) if a[3] else None
    ),
    "sendfile": lambda r, t, a: r.copy(t, Source(a[1], a[2]), a[0], a[3]),
    "splice": lambda r, t, a: r.copy(
        t, Source(a[0], a[1]), a[2], a[4], _number(t, a[3]) if a[3] else None
    ),
    "ioctl": Reader.clone,
    "sendto": Reader.send_to,
    "sendmsg": lambda r, t, a: r.send_message(t, a[0], a[1]),
    "sendmmsg": lambda r, t, a: r.send_message(t, a[0], a[1]),
    "connect": Reader.connect,
    "listen": Reader.listen,
    "exit_group": lambda _r, _t, a: Deed(CallKind.EXIT, size=a[0] & 0xFF),
    "mmap": Reader.map,
    "io_uring_setup": _whole("io_uring"),
    "io_submit": _whole("io_submit"),
    "seccomp": _whole("a listener of its own, which the kernel refuses"),
}
"""How the arguments of each call are read."""
