"""Removes the bytes of files that would be lost because their sync has failed.

Linux reports an error of the disk once, at the next sync, and then treats the pages as written. A program still reads
them from the cache, and a later sync succeeds, but they never reach the disk (Rebello et al., "Can Applications Recover
from fsync Failures?", USENIX ATC 2020). So labkit drops them after the start in which the sync failed.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from labkit.host.syscalls.calls import Call, CallKind
from labkit.host.syscalls.faults import Fault

_LOSING = frozenset({Fault.EIO, Fault.ENOSPC, Fault.FSYNC})
_END = 1 << 62


class _Lost(NamedTuple):
    path: str
    begin: int
    end: int


class Unsynced:
    """Tracks how many bytes of each file one start has synced, and removes bytes whose sync failed.

    Only the sizes of files are tracked. So two kinds of change cannot be undone after a failed sync: bytes that were
    overwritten in place, and names that changed in a folder. `unmodelled` then says which of the two remained.
    """

    def __init__(self) -> None:
        self._synced: dict[str, int] = {}
        self._in_place: set[str] = set()
        """The files with bytes that were overwritten since the last sync."""
        self._lost: _Lost | None = None
        self.unmodelled = ""
        """What a failed sync loses on a real disk and `drop` cannot remove, such as names in a folder; or empty."""

    def note(self, call: Call) -> None:
        """Record a system call that is about to happen."""
        path, size = call.path, _size(call.path)
        match call.kind:
            case CallKind.CREATE:
                self._synced[path] = 0
            case CallKind.WRITE:
                if call.offset < self._synced.setdefault(path, size):
                    self._in_place.add(path)
                self._written_anew(path, call.offset, call.offset + call.size)
            case CallKind.TRUNCATE:
                self._synced[path] = min(self._synced.get(path, size), max(call.size, 0))
                self._written_anew(path, max(call.size, 0), _END)
            case CallKind.SYNC:
                for each in self._saved_by(call):
                    self._synced[each] = _size(each)
                    self._in_place.discard(each)
            case CallKind.UNLINK:
                self._forget(path)
            case CallKind.RENAME:
                self._rename(path, call.target)

    def _saved_by(self, call: Call) -> Iterable[str]:
        if call.name == "sync":
            return list(self._synced)
        if call.name == "syncfs":
            disk = _disk(call.path)
            return [each for each in self._synced if disk is not None and _disk(each) == disk]
        return [call.path]

    def _written_anew(self, path: str, begin: int, end: int) -> None:
        lost = self._lost
        if lost and lost.path == path and begin <= lost.begin and end >= lost.end:
            self._lost = None

    def _rename(self, path: str, target: str) -> None:
        self._forget(target)
        if path in self._synced:
            self._synced[target] = self._synced.pop(path)
        if self._lost and self._lost.path == path:
            self._lost = self._lost._replace(path=target)

    def _forget(self, path: str) -> None:
        self._synced.pop(path, None)
        if self._lost and self._lost.path == path:
            self._lost = None

    def fail(self, call: Call, fault: Fault) -> None:
        """Record that a system call fails. If it is a sync, the bytes that it should have saved count as lost."""
        if call.kind is not CallKind.SYNC or fault not in _LOSING:
            return
        size = _size(call.path)
        synced = self._synced.get(call.path, size)
        if not Path(call.path).is_file():
            self.unmodelled = "the names in a folder"
        elif call.path in self._in_place:
            self.unmodelled = "bytes that were overwritten in place"
        if Path(call.path).is_file() and synced < size:
            self._lost = _Lost(call.path, synced, size)

    def drop(self) -> None:
        """Remove the bytes whose sync failed: shorten the file, or write zeros over them if other bytes follow."""
        lost, self._lost = self._lost, None
        if lost is None:
            return
        with suppress(FileNotFoundError), Path(lost.path).open("r+b") as file:
            if _size(lost.path) <= lost.end:
                file.truncate(lost.begin)
            else:
                file.seek(lost.begin)
                file.write(b"\0" * (lost.end - lost.begin))


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _disk(path: str) -> int | None:
    try:
        return Path(path).stat().st_dev
    except OSError:
        return None
