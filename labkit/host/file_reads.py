"""Which files somebody reads, told by the kernel (inotify).

Only folders that are there when the watch begins are looked at. Whoever asks the kernel for a file's size or existence
alone is not seen. This module must not open a file.
"""

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

IN_ACCESS, IN_CLOSE_WRITE, IN_CLOSE_NOWRITE, IN_OPEN = 0x1, 0x8, 0x10, 0x20
IN_Q_OVERFLOW, IN_ISDIR = 0x4000, 0x40000000
_WANTED = IN_ACCESS | IN_CLOSE_WRITE | IN_CLOSE_NOWRITE | IN_OPEN
_HEAD = struct.Struct("iIII")
_ROOM = 1 << 16
MOST_FOLDERS = 2000
"""In more folders than that nothing is told apart."""


class Use(NamedTuple):
    """What was done with one file while it was looked at."""

    opened: int = 0
    written: int = 0
    """How often a file that was open for writing was closed."""
    read: int = 0
    """How often it was read, or a file that was open for reading only was closed."""


def _below(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for at, _, _ in os.walk(folder.resolve()):
            yield Path(at)


class FileReads:
    """Looks at folders, for a block. Where inotify is not to be had, everything counts as read."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._descriptor = -1
        self._names: dict[int, Path] = {}
        self._opened: Counter[Path] = Counter()
        self._written: Counter[Path] = Counter()
        self._read: Counter[Path] = Counter()
        self._blind = False

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        begin = getattr(libc, "inotify_init1", None)
        self._descriptor = begin(os.O_NONBLOCK | os.O_CLOEXEC) if begin else -1
        self._blind = self._descriptor < 0
        below = list(islice(_below(self._folders), MOST_FOLDERS + 1))
        if len(below) > MOST_FOLDERS:
            self._blind = True
        for folder in [] if self._blind else below:
            name = os.fsencode(folder)
            number = libc.inotify_add_watch(self._descriptor, name, _WANTED)
            if number >= 0:
                self._names[number] = folder
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def covers(self, path: Path) -> bool:
        """Whether everything that is done with this file is seen."""
        return not self._blind and path.parent in self._names.values()

    def use(self, path: Path) -> Use:
        """What was done with a file so far."""
        self._take()
        return Use(self._opened[path], self._written[path], self._read[path])

    def is_only_written(self, path: Path) -> bool:
        """Whether nobody has read this file or has it open for reading now; false where that cannot be known."""
        use = self.use(path)
        return self.covers(path) and not use.read and use.opened == use.written

    def _take(self) -> None:
        """What the kernel has told since the last time."""
        with suppress(BlockingIOError):
            while self._descriptor >= 0 and (content := os.read(self._descriptor, _ROOM)):
                self._count(content)

    def _count(self, content: bytes) -> None:
        place = 0
        while place < len(content):
            number, mask, _, length = _HEAD.unpack_from(content, place)
            place += _HEAD.size
            name = content[place : place + length].rstrip(b"\0")
            place += length
            self._blind = self._blind or bool(mask & IN_Q_OVERFLOW)
            if mask & IN_ISDIR or number not in self._names or not name:
                continue
            path = self._names[number] / os.fsdecode(name)
            self._opened[path] += bool(mask & IN_OPEN)
            self._written[path] += bool(mask & IN_CLOSE_WRITE)
            self._read[path] += bool(mask & (IN_ACCESS | IN_CLOSE_NOWRITE))
