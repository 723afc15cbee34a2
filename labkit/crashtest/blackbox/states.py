"""Compare the states of a pipeline's files, so that the test recovers from equal states only once.

A start of a pipeline whose whole state is in files depends on these files alone. So a second crash is worth a run of
its own only if it leaves files from which no other run has recovered. Ids in names are masked, and contents that differ
from run to run are compared as far as they agree.
"""

import hashlib
import os
import stat
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.blackbox.durability import is_rebuilt
from labkit.crashtest.blackbox.effects import Namer, mask

MOST_FILES = 2_000
"""The largest number of files whose states are compared; they are listed before every effect."""
MOST_TEXT = 65_536
"""The largest file in bytes whose text is compared with ids and times masked."""
_CACHE = "__pycache__"
_SECOND = 1_000_000_000

EXACT, MASKED, PRESENT, IGNORED = range(4)
"""How far a file is compared: wholly, with ids and times masked, only whether it is empty, or not at all."""


class Content(NamedTuple):
    """What is compared of one file, by how far the file agrees from run to run."""

    exact: bytes
    """A digest of its bytes, kind, mode, number of names, extended attributes, and of a time that somebody set."""
    masked: bytes
    """A digest of its text with ids and times masked; of other files whether they are empty."""
    is_empty: bool

    def known(self, level: int) -> Hashable:
        """Return what is compared of the file at a level."""
        return (self.exact, self.masked, self.is_empty)[level]


State = Mapping[str, Content | None]
"""The files that differ from those at the beginning of the test, by masked path; None for one that is not there."""


class WatchedFiles:
    """Reads the watched folders of one harness before each effect; only files that have changed are read again."""

    def __init__(self, folders: Sequence[Path], apart: Path) -> None:
        """Prepare to read these folders, but not `apart`, the test's own folder."""
        self._folders, self._apart = folders, str(apart)
        self.base: State | None = None
        """The files before the first run, at the first look; other states are kept as differences from it."""
        self._known: dict[str, tuple[tuple[int, ...], Content]] = {}
        self.too_many = False
        """Whether there are too many files to compare, so that there are no states."""

    def look(self, namer: Namer) -> State | None:
        """Return the state of the files while the pipeline is held; None if there are too many."""
        there = None if self.too_many else self._all(namer)
        if there is None or self.base is None:
            self.base = there
            return there and {}
        base = self.base
        changed: dict[str, Content | None] = {path: each for path, each in there.items() if base.get(path) != each}
        return changed | {path: None for path in base if path not in there}

    def _all(self, namer: Namer) -> dict[str, Content] | None:
        contents: dict[str, list[Content]] = {}
        for number, path in enumerate(self._files()):
            if number > MOST_FILES:
                self.too_many = True
                return None
            name = namer.file(path)
            if name is not None and not is_rebuilt(path) and (content := self._content(path)) is not None:
                contents.setdefault(name, []).append(content)
        return {
            f"{name} {turn}" if turn else name: content
            for name, alike in contents.items()
            for turn, content in enumerate(sorted(alike))
        }

    def _files(self) -> Iterator[str]:
        for folder in self._folders:
            for place, folders, names in os.walk(folder):
                folders[:] = [each for each in folders if each != _CACHE and f"{place}/{each}" != self._apart]
                yield from (f"{place}/{name}" for name in (*folders, *names))

    def _content(self, path: str) -> Content | None:
        """Return what is compared of a file; None if it went meanwhile, as a process that is not held may remove it."""
        with suppress(OSError):
            state = os.lstat(path)
            times = state.st_mtime_ns, state.st_ctime_ns
            signature = (state.st_ino, state.st_mode, state.st_nlink, state.st_size, *times)
            if path not in self._known or self._known[path][0] != signature:
                self._known[path] = signature, self._read(path, state)
            return self._known[path][1]
        return None

    def _read(self, path: str, state: os.stat_result) -> Content:
        body = b""
        if stat.S_ISLNK(state.st_mode):
            body = bytes(Path(path).readlink())
        elif stat.S_ISREG(state.st_mode):
            body = Path(path).read_bytes()
        for folder in self._folders:  # runs side by side differ in the folder
            body = body.replace(bytes(folder), b"")
        names = state.st_nlink if stat.S_ISREG(state.st_mode) else 0
        kind = [str(state.st_mode), str(names)]
        if state.st_mtime_ns % _SECOND == 0 and not stat.S_ISDIR(state.st_mode):
            kind.append(str(state.st_mtime_ns))
        with suppress(OSError):
            kind += [f"{each} {os.getxattr(path, each)!r}" for each in os.listxattr(path, follow_symlinks=False)]
        masked = b""
        if len(body) <= MOST_TEXT:
            with suppress(UnicodeDecodeError):
                masked = _digest(mask(body.decode()).encode())
        return Content(_digest(body, *kind), masked or bytes(not body), not body)


def _digest(body: bytes, *more: str) -> bytes:
    return hashlib.blake2b("\0".join(more).encode(errors="surrogateescape") + b"\0" + body, digest_size=16).digest()


class Comparison:
    """Compares states, and learns from two runs that did the same how far each file agrees from run to run."""

    def __init__(self, base: State) -> None:
        self._base = base
        self._levels: dict[str, int] = {}

    def learn(self, starts: Sequence[Mapping[str, State]]) -> list[State]:
        """Lower the level of each file that differs between starts from nothing that did the same so far.

        `starts` are their states before each effect, by its name. Returns all states of the longest start.
        """
        longest = max(starts, key=len)
        for start in starts:
            for (one, mine), (other, theirs) in zip(longest.items(), start.items(), strict=False):
                if one != other:
                    break
                for path in mine.keys() | theirs.keys():
                    while self._part(path, mine) != self._part(path, theirs):
                        self._levels[path] = self._levels.get(path, EXACT) + 1
        return list(longest.values())

    def key(self, state: State, left_out: Container[str] = ()) -> Hashable:
        """Return a value that equal states share; files in `left_out`, a set of masked paths, are not compared."""
        return frozenset(
            (path, part)
            for path in state
            if not (path in left_out or mask(path) in left_out)
            if (part := self._part(path, state)) != self._part(path, self._base)
        )

    def blurred(self) -> list[str]:
        """Return the files that are compared by no more than whether they are empty."""
        return sorted(path for path, level in self._levels.items() if level >= PRESENT)

    def _part(self, path: str, state: State) -> Hashable:
        level = self._levels.get(path, EXACT)
        content = state[path] if path in state else self._base.get(path)
        return None if level == IGNORED else "absent" if content is None else content.known(level)
