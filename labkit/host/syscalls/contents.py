"""Interpret system calls that change a file's content, make it durable, or send bytes to a server.

Bytes that cannot be read are None, never guessed.
"""

import os
import stat
import struct
from pathlib import Path

import psutil

from labkit.host.syscalls.calls import HERE, Arguments, CallEffect, CallKind, Interpretation, Unseen
from labkit.host.syscalls.sockets import Address, Peers, address
from labkit.host.syscalls.table import FICLONE, MAP_SHARED, PROT_WRITE
from labkit.host.syscalls.tracee import Opened, Tracee, WillFail

_KEEPS_SIZE = 1  # FALLOC_FL_KEEP_SIZE
_ANONYMOUS = 0x20
_WRITES_DURABLY = 0x2 | 0x4  # RWF_DSYNC, RWF_SYNC
_APPENDS = 0x10  # RWF_APPEND
_RANGE = struct.Struct("<qQQQ")
_EVERYTHING = 1 << 62
_HEAD = 64
_MAPPED = "mmap of a writable file"
_SHARING = {"bcachefs", "btrfs", "cifs", "nfs4", "ocfs2", "overlay", "xfs", "zfs"}
MESSAGE = struct.Struct("<QI4xQQQQI4x")  # struct user_msghdr


Place = tuple[int, int | None]
"""A descriptor, and the position in its file at which a call reads or writes; None: the descriptor's own position."""


class Contents:
    """Determines the effect that an intercepted system call would have: which bytes it would write, copy or send."""

    def __init__(self, output: Path, *, wanted: bool, protecting: bool) -> None:
        """Prepare to interpret the system calls of one command. Its writes to the file `output` are ignored.

        If `wanted`, each effect includes the bytes that the call would write. `protecting` says whether the kernel also
        intercepts `mprotect` and `pkey_mprotect`, which can make mapped memory writable.
        """
        state = output.stat()
        self._output = state.st_dev, state.st_ino
        self.wanted, self._protecting = wanted, protecting
        self._may_protect = False
        """Whether the command has mapped a file that a later call may make writable in memory."""
        self._peers = Peers()

    def truncate(self, tracee: Tracee, place: int, size: int) -> Interpretation:
        path = os.path.realpath(tracee.path(HERE, place))
        try:
            state = os.stat(path)  # noqa: PTH116 - a hot path
        except OSError:
            return None
        return _resized(path, state.st_size, size) if stat.S_ISREG(state.st_mode) else None

    def truncate_opened(self, tracee: Tracee, descriptor: int, size: int) -> Interpretation:
        opened = tracee.opened(descriptor)
        # Even with an equal size, `ftruncate` changes the file's times, but `truncate`, which gets a path, does not.
        return CallEffect(CallKind.TRUNCATE, opened.path, size=size) if opened.is_file else None

    def allocate(self, tracee: Tracee, of: Arguments) -> Interpretation:
        descriptor, mode, offset, length = of[:4]
        opened = tracee.opened(descriptor)
        if not opened.is_file:
            return None
        size = opened.size if mode == _KEEPS_SIZE else -1 if mode else max(opened.size, offset + length)
        # With an equal size, the call may still allocate blocks, whose number every process can read.
        return _resized(opened.path, opened.size, size) or CallEffect(CallKind.ATTRIBUTES, opened.path)

    def write(
        self, tracee: Tracee, descriptor: int, pieces: list[tuple[int, int]], offset: int | None = None, flags: int = 0
    ) -> Interpretation:
        opened = tracee.opened(descriptor)
        size = sum(length for _, length in pieces)
        if opened.is_socket:
            return self._send(opened, size, _head(tracee, pieces))
        if not self._counts(opened) or not size:
            return None
        place, synced = self._place(tracee, descriptor, opened, offset, flags)
        content = tracee.gather(pieces) if self.wanted else None
        return CallEffect(CallKind.WRITE, opened.path, "", size, place, content, synced=synced)

    def copy(self, tracee: Tracee, source: Place, target: Place, most: int) -> Interpretation:
        """Return the effect of a `sendfile` or similar call, which copies at most `most` bytes.

        Raises `WillFail` if the target was opened with O_APPEND, because the kernel then refuses the call.
        """
        (descriptor, offset), (source_descriptor, start) = target, source
        opened, origin = tracee.opened(descriptor), tracee.opened(source_descriptor)
        begin, size = start or 0, most
        if origin.is_file:
            begin = tracee.cursor(source_descriptor).position if start is None else start
            size = max(0, min(most, origin.size - begin))
        if opened.is_socket:
            return self._send(opened, size)
        if not self._counts(opened) or not size:
            return None
        if tracee.cursor(descriptor).appends:
            raise WillFail("a copy within the kernel cannot append")  # `cat`, for example, then writes instead
        place, synced = self._place(tracee, descriptor, opened, offset, 0)
        content = _part(origin, begin, size) if self.wanted else None
        return CallEffect(CallKind.WRITE, opened.path, "", size, place, content, synced=synced)

    def clone(self, tracee: Tracee, of: Arguments) -> Interpretation:
        descriptor, request, argument = of[:3]
        if not _shares_blocks(tracee.opened(descriptor).path):
            return None  # the kernel refuses the call, so programs then copy the bytes with other calls
        if request & 0xFFFFFFFF == FICLONE:
            return self.copy(tracee, (argument, None), (descriptor, 0), _EVERYTHING)
        source, start, size, offset = _RANGE.unpack(tracee.exactly(argument, _RANGE.size))
        return self.copy(tracee, (source, start), (descriptor, offset), size or _EVERYTHING)

    def _counts(self, opened: Opened) -> bool:
        return opened.is_file and (opened.device, opened.inode) != self._output

    def _place(
        self, tracee: Tracee, descriptor: int, opened: Opened, offset: int | None, flags: int
    ) -> tuple[int, bool]:
        """Return the file offset at which a write begins, and whether the write also syncs its bytes to the disk.

        `offset` is the call's argument; None for a call, such as `write`, that writes at the descriptor's position.
        `flags` are the call's RWF_* flags.
        """
        cursor = tracee.cursor(descriptor)
        synced = cursor.synced or bool(flags & _WRITES_DURABLY)
        if cursor.appends or flags & _APPENDS:  # with O_APPEND Linux appends even if the call names an offset
            return opened.size, synced
        return (cursor.position if offset is None else offset), synced

    def sync(self, tracee: Tracee, descriptor: int) -> Interpretation:
        opened = tracee.opened(descriptor)
        real = stat.S_ISREG(opened.mode) or stat.S_ISDIR(opened.mode)
        return CallEffect(CallKind.SYNC, opened.path) if real and opened.path else None

    def _send(self, opened: Opened, size: int, head: bytes = b"", to: Address | None = None) -> Interpretation:
        peer = to or self._peers.of(opened.inode)
        if not peer or not size or peer.is_name_service:
            return None
        return CallEffect(CallKind.SEND, "", str(peer), size, head=head)

    def send_to(self, tracee: Tracee, of: Arguments) -> Interpretation:
        descriptor, buffer, size, _, name, length = of[:6]
        return self._send(tracee.opened(descriptor), size, _head(tracee, [(buffer, size)]), _to(tracee, name, length))

    def send_message(self, tracee: Tracee, descriptor: int, place: int) -> Interpretation:
        name, length, vectors, count, *_ = MESSAGE.unpack(tracee.exactly(place, MESSAGE.size))
        pieces = tracee.vectors(vectors, count)
        size = sum(each for _, each in pieces)
        return self._send(tracee.opened(descriptor), size, _head(tracee, pieces), _to(tracee, name, length))

    def connect(self, tracee: Tracee, of: Arguments) -> Interpretation:
        self._peers.connects(tracee, tracee.opened(of[0]).inode, address(tracee, tracee.memory(of[1], of[2])))
        return None

    def listen(self, tracee: Tracee, of: Arguments) -> Interpretation:
        self._peers.listens(tracee, tracee.opened(of[0]).inode)
        return None

    def map(self, tracee: Tracee, of: Arguments) -> Interpretation:
        if of[3] & _ANONYMOUS or not of[3] & MAP_SHARED:
            return None
        opened = tracee.opened(of[4])
        if not opened.is_file:
            return None
        if not of[2] & PROT_WRITE:
            if not tracee.cursor(of[4]).writes:
                return None  # the kernel never makes this memory writable
            if self._protecting:
                self._may_protect = True
                return None
        return Unseen(_MAPPED, opened.path)

    def protect(self, tracee: Tracee, of: Arguments) -> Interpretation:
        paths = tracee.shared_files(of[0], of[1]) if self._may_protect else []
        return Unseen(_MAPPED, paths[0]) if paths else None


def _resized(path: str, old: int, new: int) -> CallEffect | None:
    return CallEffect(CallKind.TRUNCATE, path, size=new) if new != old else None


def _to(tracee: Tracee, name: int, length: int) -> Address | None:
    return address(tracee, tracee.memory(name, length)) if name and length else None


def _head(tracee: Tracee, pieces: list[tuple[int, int]]) -> bytes:
    # The first bytes of a message to a server suffice to recognise its type.
    head = b""
    for place, size in pieces:
        if len(head) < _HEAD:
            head += tracee.memory(place, min(size, _HEAD - len(head)))
    return head


def _shares_blocks(path: str) -> bool:
    # Whether the file system can make a copy that shares its blocks with the original (a reflink).
    holding = [each for each in psutil.disk_partitions(all=True) if Path(path).is_relative_to(each.mountpoint)]
    nearest = max(holding, key=lambda each: len(each.mountpoint), default=None)
    return nearest is not None and nearest.fstype in _SHARING


def _part(origin: Opened, start: int, size: int) -> bytes | None:
    if not origin.is_file:
        return None
    try:
        with open(origin.path, "rb") as file:  # noqa: PTH123 - a hot path
            file.seek(start)
            content = file.read(size)
    except OSError:
        return None
    return content if len(content) == size else None
