"""Compare the states of a pipeline's files, so that the test recovers from equal states only once.

A start of a pipeline whose whole state is in files depends on these files alone. So a second crash is worth a run of
its own only if it leaves files from which no other run has recovered. Ids in names are masked, and contents that differ
from run to run are compared as far as they agree.
"""

import fcntl
import hashlib
import os
import stat
import sys
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.blackbox.durability import is_rebuilt
from labkit.crashtest.blackbox.effects import Effect, Namer, family, ids_in, mask, times_in, without_number
from labkit.crashtest.blackbox.sqlite_files import JOURNAL, LOG, is_database, meaning, with_log, without_chance
from labkit.host.syscalls.calls import CallKind

MOST_MASKED = 262_144
"""The largest file in bytes that is compared with ids and times masked; a larger one is compared exactly, or not."""
MOST_IDS = 100
"""If a file has more ids or times than this, labkit does not compare which of them are equal, or earlier."""
MOST_ALIKE = 4
"""Of the files of a state that differ only in numbers, at most this many count when runs are put in order."""
_CACHE = "/__pycache__/"
_SECOND = 1_000_000_000
_GET_FLAGS, _SETTABLE = 0x80086601, 0x380FF  # FS_IOC_GETFLAGS, FS_FL_USER_MODIFIABLE (`include/uapi/linux/fs.h`)

_SETS_TIMES = frozenset({"utime", "utimes", "futimesat", "utimensat"})
_TIME_SET = b"time set"
_FOLDER = b"<folder>"

EXACT, MASKED, SIZED, PRESENT, IGNORED = range(5)
"""How far a file is compared: wholly, with ids and times masked, by its size, only whether it is empty, or not at all.

Attributes such as the mode always count, except with `IGNORED`.
"""


class Content(NamedTuple):
    """The content of a file, as values to compare it by; the first four go from the strictest to the loosest."""

    exact: bytes
    """A digest of bytes, kind, mode, owner, flags, number of names, extended attributes, and a time that was set."""
    masked: bytes
    """A digest of the same, except the time, with ids and times masked."""
    sized: bytes
    """A digest of its kind, mode, owner, flags, number of names, and size."""
    present: bytes
    """A digest of its kind, mode, owner, flags, number of names, and whether it is empty."""
    ids: tuple[bytes, ...] = ()
    """The ids in its bytes in the order of the text, such as UUIDs; empty if there are more than `MOST_IDS`."""
    times: tuple[tuple[str, str], ...] = ()
    """The times in its bytes, like `ids`; see `times_in`."""
    shape: bytes = b""
    """A digest of the same as `masked`, with one placeholder for all numbers; empty for a large file."""
    read: bytes = b""
    """Like `exact`, but if logs of SQLite are compared by their meaning: for a database, a digest of what SQLite reads
    from the database and its write-ahead log; empty for this log."""


class Change(NamedTuple):
    """A file that a run has changed: its contents before the run and now. None stands for a missing file."""

    before: Content | None
    now: Content | None
    written: int = 0
    """The running number of the last effect that wrote the file, in its run; 0 if none did."""
    ids_of_name: tuple[bytes, ...] = ()
    """The ids in the file's path, below its watched folder."""

    def known(self, level: int) -> Hashable:
        """Return what the run has done to this file, as a value for comparing runs; None if it did not change the file.

        `level`, from `EXACT` to `IGNORED`, says how strict the comparison is.
        """
        before, now = (level < IGNORED and each and each[level] for each in (self.before, self.now))
        if before == now:
            return None
        return (now,) if now else (None, before)  # else removed inputs whose names are ids would all be equal


State = Mapping[str, Change]
"""The files that differ from those before the run, by masked path."""


class RunFiles:
    """The files that one run changes. They are read before each system call, while the pipeline is stopped."""

    def __init__(self, folders: Sequence[Path] = (), *, by_meaning: bool = False) -> None:
        """Prepare to observe files. In the contents of a file, a placeholder replaces the paths of `folders`.

        Parallel runs use copies of the user's folder, and contents with the path of a copy would differ between copies.
        With `by_meaning`, logs of SQLite are compared by what SQLite would restore from them.
        """
        self._by_meaning = by_meaning
        self._folders = [bytes(each) for each in folders]
        self._before: dict[str, Content | None] = {}
        self._moved: set[str] = set()
        self._read: dict[str, tuple[tuple[int, ...], Content]] = {}
        self._pending: Effect | None = None
        """The effect before which the files were last looked at."""
        self._effects = 0
        self._written: dict[str, int] = {}
        """The running number of the last effect that wrote a file, by its path."""
        self._set: dict[str, int] = {}
        """The modification times of files just before a call that sets them, until the file is written again."""

    def look(self, effect: Effect, namer: Namer) -> State:
        """Return the state of the files just before the system call `effect`.

        From now on, the files that this call changes are part of the state as well.
        """
        self._note_write()
        self._pending, call = effect, effect.call
        for path in {call.path, call.target} - {""} if effect.kind not in (CallKind.SYNC, CallKind.SEND) else ():
            if effect.kind in (CallKind.RENAME, CallKind.LINK):
                self._moved.add(path)
            for each in (*self._below(path), *_database_of(path)):
                self._before.setdefault(each, self._content(each))
        files = {*self._before, *(each for path in self._moved for each in self._below(path))}
        changes: dict[str, list[Change]] = {}
        for path in sorted(files):
            now = self._with_time(path)
            change = Change(self._before.get(path), now, self._written.get(path, 0), namer.ids(path))
            name = namer.file(path)
            if change.before != change.now and name is not None and not is_rebuilt(path) and _CACHE not in path:
                changes.setdefault(name, []).append(change)
        self._note_times(effect)
        return {
            f"{name} #{turn}" if turn else name: change
            for name, alike in changes.items()
            for turn, change in enumerate(sorted(alike, key=repr))
        }

    def prevented(self) -> None:
        """Note that a kill prevented the system call that was passed to the last `look`."""
        self._pending = None

    def _note_write(self) -> None:
        if self._pending is None:
            return
        call, self._effects = self._pending.call, self._effects + 1
        # Two writes may leave equal times, because kernels before 6.13 count them in ticks of some milliseconds.
        for path in (call.path, call.target):
            self._read.pop(path, None)
            for other in (f"{path}{JOURNAL}", *_database_of(path)):
                self._read.pop(other, None)
        if call.kind in (CallKind.RENAME, CallKind.LINK):  # the file keeps the time of its last write
            self._written[call.target] = self._written.get(call.path, 0)
        elif call.kind in (CallKind.CREATE, CallKind.WRITE, CallKind.TRUNCATE):
            self._written[call.path] = self._effects

    def _note_times(self, effect: Effect) -> None:
        call = effect.call
        if effect.kind is CallKind.ATTRIBUTES and call.name in _SETS_TIMES:
            with suppress(OSError):
                self._set[call.path] = os.lstat(call.path).st_mtime_ns
        elif effect.kind is CallKind.RENAME and call.path in self._set:
            self._set[call.target] = self._set.pop(call.path)
        elif effect.kind not in (CallKind.SYNC, CallKind.SEND, CallKind.ATTRIBUTES):
            self._set.pop(call.target or call.path, None)

    def _with_time(self, path: str) -> Content | None:
        """Return a file's content, with a mark if a call has set the modification time since the last write.

        Because of the mark, the content differs from the same content without it. The time itself differs from run to
        run, so it is not compared.
        """
        content = self._content(path)
        with suppress(OSError):
            if content is not None and path in self._set and os.lstat(path).st_mtime_ns != self._set[path]:
                exact, masked, read = (each + _TIME_SET for each in (content.exact, content.masked, content.read))
                return content._replace(exact=exact, masked=masked, read=read)
        return content

    def _below(self, path: str) -> Iterator[str]:
        yield path
        if path in self._moved:
            for place, folders, names in os.walk(path):
                yield from (f"{place}/{name}" for name in (*folders, *names))

    def _content(self, path: str) -> Content | None:
        with suppress(OSError):
            state = os.lstat(path)
            beside = self._beside(path) if stat.S_ISREG(state.st_mode) else None
            signature = *_signature(state), *(_signature(beside.stat()) if beside is not None else ())
            if path not in self._read or self._read[path][0] != signature:
                self._read[path] = signature, self._new_content(path, state, beside)
            return self._read[path][1]
        return None

    def _beside(self, path: str) -> Path | None:
        """Return the other file that decides what SQLite reads from the file `path`; None if there is none.

        For a journal this is its database, and for a database its write-ahead log.
        """
        name = path.removesuffix(JOURNAL) if path.endswith(JOURNAL) else f"{path}{LOG}" if self._by_meaning else ""
        return Path(name) if name and Path(name).is_file() else None

    def _is_log(self, path: str) -> bool:
        """Return whether a file is a write-ahead log of SQLite that is compared by what SQLite would read from it."""
        if not (self._by_meaning and path.endswith(LOG) and Path(path.removesuffix(LOG)).is_file()):
            return False
        with Path(path.removesuffix(LOG)).open("rb") as database:
            return is_database(database.read(16))

    def _new_content(self, path: str, state: os.stat_result, beside: Path | None) -> Content:
        body, read = b"", None
        kind, more = [f"{state.st_mode} {state.st_uid} {state.st_gid} {_flags(path)}"], []
        if stat.S_ISLNK(state.st_mode):
            body = bytes(Path(path).readlink())
        elif stat.S_ISREG(state.st_mode):
            body = Path(path).read_bytes()
            kind.append(str(state.st_nlink))
        other = beside.read_bytes() if beside is not None else None
        if self._by_meaning:
            if is_database(body) and other is not None:
                read = without_chance(with_log(body, other))
            body = meaning(body, other if path.endswith(JOURNAL) else None)
        else:
            body = without_chance(body)
        for folder in self._folders:  # afterwards, since the checksums of a log are about the whole paths
            body = body.replace(folder, _FOLDER)
            read = read and read.replace(folder, _FOLDER)
        time = [str(state.st_mtime_ns)] if state.st_mtime_ns % _SECOND == 0 and not stat.S_ISDIR(state.st_mode) else []
        with suppress(OSError):
            more += [f"{each} {os.getxattr(path, each)!r}" for each in os.listxattr(path, follow_symlinks=False)]
        exact = _digest(body, *kind, *more, *time)
        merged = b"" if self._is_log(path) else exact if read is None else _digest(read, *kind, *more, *time)
        sized, present = _digest(str(len(body)).encode(), *kind), _digest(b"1" if body else b"", *kind)
        if len(body) > MOST_MASKED:
            return Content(exact, exact, sized, present, read=merged)
        # Latin-1 gives each byte a character: ids and times are ASCII, in a database's pages as well.
        text = mask(body.decode("latin-1"), entries=False)
        masked = _digest(text.encode(), *kind, *(mask(each, entries=False) for each in more))
        ids, times = ids_in(body), times_in(body)
        ids, times = ids if len(ids) <= MOST_IDS else (), times if len(times) <= MOST_IDS else ()
        return Content(exact, masked, sized, present, ids, times, _digest(family(text).encode(), *kind), merged)


def _signature(state: os.stat_result) -> tuple[int, ...]:
    return state.st_ino, state.st_mode, state.st_nlink, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def is_compared(path: str, left_out: Container[str]) -> bool:
    """Return whether a path of a state is not in `left_out`, which has masked paths."""
    return without_number(path) not in left_out and mask(without_number(path)) not in left_out


def as_read(state: State, left_out: Container[str]) -> Hashable:
    """Return a value that is equal for states in which SQLite reads the same, and all other files are equal.

    A write-ahead log counts as a part of its database. Files in `left_out` (masked paths) do not count.
    """
    compared = ((path, change.now) for path, change in state.items() if is_compared(path, left_out))
    return frozenset((path, now and now.read) for path, now in compared if now is None or now.read)


def _database_of(path: str) -> Iterator[str]:
    """Yield the path of the database if `path` is that of a write-ahead log."""
    if path.endswith(LOG):
        yield path.removesuffix(LOG)


def _is_single(path: str, state: State) -> bool:
    """Return whether only one file has this masked path; several such files get numbers, which vary from run to run."""
    return f"{without_number(path)} #1" not in state


def _flags(path: str) -> int:
    """Return the flags of a file that `chattr` sets; 0 if it has none, or if they cannot be read."""
    flags = bytearray(8)
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.ioctl(file, _GET_FLAGS, flags)
        finally:
            os.close(file)
    return int.from_bytes(flags[:4], sys.byteorder) & _SETTABLE


def _digest(body: bytes, *more: str) -> bytes:
    return hashlib.blake2b("\0".join(more).encode(errors="surrogateescape") + b"\0" + body, digest_size=16).digest()


class Comparison:
    """Compares states of a pipeline's files, except contents that differ by chance, such as a time."""

    def __init__(self) -> None:
        self._levels: Counter[str] = Counter()
        """How far files are compared (`EXACT` unless they differ), by the family of their names."""

    def learn(self, starts: Sequence[Mapping[str, State]]) -> list[State]:
        """Compare a file less strictly from now on if it differs between starts that had made the same calls.

        `starts` has a dict for each start, from the name of a call to the state before this call. Returns the states
        before each call of the start that made the most calls.
        """
        longest = max(starts, key=len)
        for start in starts:
            for (one, mine), (other, theirs) in zip(longest.items(), start.items(), strict=False):
                if one != other:
                    break
                for path in mine.keys() | theirs.keys():
                    while self._part(path, mine) != self._part(path, theirs):
                        self._levels[family(path)] += 1
        return list(longest.values())

    def key(self, state: State, left_out: Container[str] = ()) -> tuple[frozenset[tuple[str, Hashable]], Hashable]:
        """Return a value that is equal for equal states of the files, apart from those in `left_out`.

        The value is a pair. The first half has a part for each file that the run has changed. Equal files whose names
        differ only in ids or times share one part, because each crash may leave another such file. The second half says
        at which places the same id occurs: two equal states may have different ids, but where one state has the same id
        twice, the other must as well, because an id may tell which files belong together.
        """
        compared = [path for path in state if is_compared(path, left_out)]
        parts = frozenset(
            (without_number(path), part) for path in compared if (part := self._part(path, state)) is not None
        )
        places: dict[bytes, list[tuple[str, bool, int]]] = defaultdict(list)
        for path in compared:
            name, now = without_number(path), state[path].now
            found = now.ids if now is not None and self._is_masked(path) else ()
            for is_name, ids in ((True, state[path].ids_of_name), (False, found)):
                for place, each in enumerate(ids):
                    places[each].append((name, is_name, place))
        # Only where an id occurs matters, not how many ids occur at the same places.
        return parts, frozenset(tuple(sorted(each)) for each in places.values())

    def shape(self, state: State, left_out: Container[str] = ()) -> Hashable:
        """Return a value that is equal for states that differ only in numbers, such as a counter of starts.

        Equal states have equal shapes. The test uses this value only to try first the states that differ in more than
        numbers. Of several files that differ only in numbers, at most `MOST_ALIKE` count.
        """
        alike = Counter(
            (family(path), now.shape if (now := state[path].now) is not None and self._is_masked(path) else now is None)
            for path in state
            if is_compared(path, left_out)
        )
        return frozenset((each, min(times, MOST_ALIKE)) for each, times in alike.items())

    def order(self, state: State, left_out: Container[str] = ()) -> Hashable:
        """Return the files in the order in which they were last written, as their modification times show it.

        A second part of the result ranks the times that are written in these files, since a program may look there for
        the newest file.
        """
        alone = {
            path: change
            for path, change in state.items()
            if change.now is not None and is_compared(path, left_out) and _is_single(path, state)
        }
        written = sorted((each.written, path) for path, each in alone.items() if each.written)
        times = [
            (path, each.now.times)
            for path, each in sorted(alone.items())
            if each.now is not None and each.now.times and self._levels[family(path)] == MASKED
        ]
        ranks = {time: rank for rank, time in enumerate(sorted({time for _, found in times for time in found}))}
        ranked = tuple((path, tuple(ranks[time] for time in found)) for path, found in times)
        return tuple(path for _, path in written), ranked

    def _is_masked(self, path: str) -> bool:
        return self._levels[family(path)] <= MASKED

    def blurred(self) -> list[str]:
        """Return the files whose contents are not compared, because they differ even between equal starts."""
        return sorted(path for path, level in self._levels.items() if level >= SIZED)

    def _part(self, path: str, state: State) -> Hashable:
        return state[path].known(self._levels[family(path)]) if path in state else None
