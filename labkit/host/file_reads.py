"""Observe which files are read, by any process, through the kernel's inotify.

The crash test uses this to find files, such as logs, that a pipeline writes but never reads. Only folders and files
that exist when the observation begins are covered. A request for a file's size or existence cannot be observed.
"""

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

IN_ACCESS, IN_CLOSE_WRITE, IN_CLOSE_NOWRITE, IN_OPEN = 0x1, 0x8, 0x10, 0x20
IN_Q_OVERFLOW, IN_ISDIR = 0x4000, 0x40000000
_WANTED = IN_ACCESS | IN_CLOSE_WRITE | IN_CLOSE_NOWRITE | IN_OPEN
_HEAD = struct.Struct("iIII")
_ROOM = 1 << 16
MOST_FOLDERS = 2000
"""The largest number of folders to observe; if there are more, no file is observed, and `covers` returns False."""


class Use(NamedTuple):
    """How often processes opened, wrote and read a file while `FileReads` observed it."""

    opened: int = 0
    written: int = 0
    """The number of times that a process closed the file after opening it for writing."""
    read: int = 0
    """The number of reads of the file, and of times that a process closed it after opening it for reading only."""


class FileReads:
    """Counts, by inotify, how often any process opens, reads and writes certain files within a `with` block."""

    def __init__(self, folders: Sequence[Path], files: Sequence[Path] = ()) -> None:
        """Prepare to observe all files below `folders`, and also the single files in `files`.

        A single file is observed as the inode that has the name now, so a later file of the same name is not observed.
        """
        self._folders, self._singles = folders, files
        self._descriptor = -1
        self._names: dict[int, Path] = {}
        self._files: dict[int, Path] = {}
        self._opened: Counter[Path] = Counter()
        self._written: Counter[Path] = Counter()
        self._read: Counter[Path] = Counter()
        self._blind = False

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        begin = getattr(libc, "inotify_init1", None)
        self._descriptor = begin(os.O_NONBLOCK | os.O_CLOEXEC) if begin else -1
        self._blind = self._descriptor < 0
        every = (Path(folder) for top in self._folders for folder, _, _ in os.walk(top.resolve()))
        below = list(islice(every, MOST_FOLDERS + 1))
        self._blind = self._blind or len(below) > MOST_FOLDERS
        for paths, watched in () if self._blind else ((below, self._names), (self._singles, self._files)):
            for path in paths:
                number = libc.inotify_add_watch(self._descriptor, os.fsencode(path), _WANTED)
                if number >= 0:
                    watched[number] = path
        return self

    def __exit__(self, *_: object) -> None:
        self._count_pending()
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def covers(self, path: Path) -> bool:
        """Return whether every read and write of this file is observed, so that the counts of the file are complete."""
        return not self._blind and (path.parent in self._names.values() or path in self._files.values())

    def use(self, path: Path) -> Use:
        """Return how often processes have opened, written and read the file so far, or until the end of the block."""
        self._count_pending()
        return Use(self._opened[path], self._written[path], self._read[path])

    def is_only_written(self, path: Path) -> bool:
        """Return whether all processes that opened this file only wrote to it; False if its reads are not observed."""
        use = self.use(path)
        return self.covers(path) and not use.read and use.opened == use.written

    def _count_pending(self) -> None:
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
            path = self._files.get(number)
            if path is None and number in self._names and name:
                path = self._names[number] / os.fsdecode(name)
            if mask & IN_ISDIR or path is None:
                continue
            self._opened[path] += bool(mask & IN_OPEN)
            self._written[path] += bool(mask & IN_CLOSE_WRITE)
            self._read[path] += bool(mask & (IN_ACCESS | IN_CLOSE_NOWRITE))
