"""Name the durable effects of a pipeline, so that the same effect has the same name in every run.

A name such as `rename offsets/<n> #2` consists of the kind of system call, the file or server, and a running number
among such calls on that file. Ids, process numbers, times and temporary names are masked, because they differ from run
to run. So are the numbers of log entries (`offsets/3`), because the order shows them anyway. Numbers that distinguish
files of one step (`part-00001`) stay, because chance decides the order of such files. A message for a server gets its
name from its first bytes, if they are recognised.
"""

import fnmatch
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from labkit.crashtest.blackbox.messages import ASKING, word
from labkit.host.python_line import Line
from labkit.host.syscalls.calls import Call, CallKind

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?<![0-9a-zA-Z])[0-9a-f]{32}(?![0-9a-zA-Z])")
_TEMPORARY = re.compile(
    r"(?<![A-Za-z0-9])(?:tmp[a-z0-9_]{8}|(?<=\.)tmp_[a-z0-9_]{8}$|tmp\.[A-Za-z0-9]{10}|sed[A-Za-z0-9]{6}$)"
    r"(?![A-Za-z0-9_])"
)
"""A pattern for the names of temporary files that Python's `tempfile`, `mktemp` and `sed -i` create."""
_ID = re.compile(r"(?<![0-9a-zA-Z])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}(?![0-9a-zA-Z])")
_ANY_ID = re.compile(f"{_UUID.pattern}|{_ID.pattern}")
_LONG = re.compile(r"(?<!\d)[1-9](?:\d{9}\.\d+|\d{7,})(?!\d)")
"""A long number, or a Unix time with a fraction of a second (dlt names load packages by it)."""
_TIME = re.compile(
    r"(?<!\d)(?P<day>20\d\d(?:-[01]\d-[0-3]\d(?=[T _.-])|[01]\d[0-3]\d(?=[T _.-])))[T _.-]"
    r"[0-2]\d(?:[:._-]?[0-5]\d){1,2}(?:[.,_]\d{1,9})?(?:Z|[+-][01]\d:?[0-5]\d)?(?!\d)"
)
"""A pattern for a time of day after a date: `2026-11-30T05:44:39.993`, `20261130_0544`, `2026-11-30 05.44.39`."""
_UNIX_TIME = re.compile(r"(?<!\d)[12]\d{9}(?:\d{3}|\d{6}|\d{9}|\.\d{3,9})(?!\d)")
"""A pattern for a Unix time that is more precise than a second, such as `1764029102.525` or `1764029102525`."""
_DAY = 86_400
_SHARD = re.compile(r"(?<![^/])([0-9a-f]{2,3})(?=/\1[0-9a-f]{5,6}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![^/]))")
"""A folder that is named by the first digits of the UUID below it, as ClickHouse does: `a1b/a1b2c3d4-...`."""
_NUMBER = re.compile(r"\d+")
_DIGIT, _FRACTION = re.compile(r"\d"), re.compile(r"[.,_]\d{3,9}(?!\d)")
_ENTRY = re.compile(r"^([._]*(?:v(?=\d+\.))?)\d+(?=$|\.|-<uuid>\.metadata)")
"""The number in the name of a log entry, up to the first dot (`.3.<uuid>.tmp`, `v2.metadata.json`)."""
_SUPER_JOURNAL = re.compile(r"(?<=-mj)[0-9A-F]{6}9[0-9A-F]{2}$")
"""The random part in the name of SQLite's super-journal, which commits a transaction over several databases."""
_CHECKPOINT = re.compile(r"(?<=^chk-)\d+$")
_SAVEPOINT = re.compile(r"^savepoint-[0-9a-f]{6}-[0-9a-f]{12}$")
"""The name of a Flink savepoint's folder: six digits of the job's id, then twelve random ones."""
_ATTEMPT = re.compile(r"(?<=_)(attempt_<n>_\d+_[mr]_\d+_)\d+|^(\d{5}-)\d+(?=-<uuid>)")
"""The number of a task's attempt in file names of Hadoop's committers and of Iceberg."""
_SMALLEST_PID = 100

RETURN = "return"
"""The `Call.name` of a LINE that is no line, but the return from the outermost function of the user's code."""


def mask(text: str, *, entries: bool = True, pids: Iterable[int] = ()) -> str:
    """Return a path in which placeholders replace the parts that differ from run to run, such as ids and times.

    With `entries`, the numbers of successive files are replaced as well: `offsets/3` becomes `offsets/<n>`. `pids` are
    process ids to replace.
    """
    own = {str(pid) for pid in pids if pid >= _SMALLEST_PID}
    *folders, last = _SHARD.sub("<hex>", text).split("/")
    parts = [_mask(part, own) for part in folders]
    masked = _mask(last, own)
    if entries:
        parts = [_CHECKPOINT.sub("<n>", part) for part in parts]
        masked = _ENTRY.sub(r"\1<n>", masked)
    return "/".join([*parts, masked])


def _mask(part: str, pids: set[str]) -> str:
    part = _SAVEPOINT.sub("savepoint-<hex>", part)
    part = _SUPER_JOURNAL.sub("<hex>", part)
    part = _TIME.sub(lambda at: "<time>" if _is_present(at["day"]) else at[0], part)
    part = _UUID.sub("<uuid>", part)
    part = _TEMPORARY.sub("tmp<x>", part)
    part = _ID.sub("<hex>", part)
    part = _LONG.sub("<n>", part)
    part = _ATTEMPT.sub(r"\1\2<n>", f"_{part}" if "attempt_" in part else part)
    if "attempt_" in part:
        part = part.removeprefix("_")
    return _NUMBER.sub(lambda at: "<pid>" if at[0].lstrip("0") in pids else at[0], part)


def _is_present(day: str) -> bool:
    """Return whether a date is today's date in some time zone; any other date is a part of the user's data."""
    return day.replace("-", "") in _days_around(int(time.time()) // _DAY)


@lru_cache(maxsize=2)
def _days_around(day: int) -> frozenset[str]:
    return frozenset(time.strftime("%Y%m%d", time.gmtime(each * _DAY)) for each in (day - 1, day, day + 1))


def times_in(body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the times in a file's bytes that are more precise than a second, in the order of the text.

    A time written with a date counts only if the date can be the day of this test. Each result is a pair (format,
    text); the pairs of one format sort by time.
    """
    text = body.decode("latin-1")
    found = [(at.start(), at[0]) for at in _UNIX_TIME.finditer(text)]
    found += [(at.start(), at[0]) for at in _TIME.finditer(text) if _is_present(at["day"]) and _FRACTION.search(at[0])]
    return tuple((_DIGIT.sub("0", time), time) for _, time in sorted(found))


def ids_in(body: bytes) -> tuple[bytes, ...]:
    """Return the UUIDs and hexadecimal ids in a file's bytes, in the order of the text."""
    return tuple(match[0].encode() for match in _ANY_ID.finditer(body.decode("latin-1")))


def family(where: str) -> str:
    """Return a masked path with `<n>` in place of every number."""
    return _NUMBER.sub("<n>", where)


def without_number(name: str) -> str:
    """Return the name of a system call without its running number: `rename a` for `rename a #2`."""
    return name.rpartition(" #")[0] or name


@dataclass(frozen=True)
class Effect:
    """One system call that changes something durable (an effect); its name is the same in every run."""

    call: Call
    where: str
    """The masked path below its watched folder; after a rename, the new path.

    For a message (SEND), the server and the name of the message, as in `127.0.0.1:5432 COMMIT`; for a LINE, `sink.py:8`
    or, before the return from there, `sink.py:8 return`; for EXIT, empty.
    """
    occurrence: int
    """The running number among effects of this kind on this masked path in the run, from 1."""
    file: str = ""
    """The path in `where` before it was masked; empty for SEND, LINE and EXIT, which change no known file."""
    cuts: Mapping[str, int] | None = None
    """Where the test may cut a write, as `labkit.crashtest.blackbox.points.cuts` returns it; None if unknown."""

    @property
    def kind(self) -> CallKind:
        return self.call.kind

    @property
    def name(self) -> str:
        """The name of the system call, such as `rename offsets/<n> #2`."""
        if self.kind is CallKind.EXIT:
            return "exit"
        return f"{self.kind} {self.where} #{self.occurrence}"

    @property
    def line(self) -> Line | None:
        """The line of Python that makes the system call; None if it is not known."""
        return self.call.line

    @property
    def family(self) -> str:
        """The call's name without numbers, such as `rename offsets/<n>`, which all similar system calls share."""
        place = self.where if self.kind in (CallKind.SEND, CallKind.LINE) else family(self.where)
        return f"{self.kind} {place}".rstrip()


def _labels(folders: Sequence[Path]) -> dict[Path, str]:
    """Return the label of each folder in the names of calls: the folder's name or, if two names are equal, its path.

    The path is relative to the folder that contains all of these folders. The label of a single folder is empty.
    """
    if len(folders) < 2:
        return dict.fromkeys(folders, "")
    if len({each.name for each in folders}) == len(folders):
        return {each: each.name for each in folders}
    common = os.path.commonpath(folders)
    return {each: str(each.relative_to(common)) for each in folders}


class Namer:
    """Gives names to the system calls of a run. Pass it the calls in order, because names contain running numbers."""

    def __init__(
        self,
        folders: Sequence[Path],
        ignored: Sequence[str] = (),
        numbered: frozenset[str] = frozenset(),
        earlier: Iterable[Call] = (),
        unnamed: Path | None = None,
        *,
        mask_more: Callable[[str], str] = str,
    ) -> None:
        """Prepare to name the system calls that concern the watched `folders`.

        `ignored` are patterns of files and servers that do not belong to the pipeline. In the name of a call, the path
        is usually masked: a placeholder replaces the number of a file, as in `offsets/<n>` for `offsets/3`. The masked
        paths in `numbered` keep the number, because the order of these files differs from run to run. `earlier` are
        the calls of earlier starts; their process ids are masked as well, because file names may contain them. Paths
        in the folder `unnamed` appear without the folder's name. `mask_more` is applied to each path first. It masks,
        for example, random names, which labkit recognises by comparing two runs.
        """
        self._folders = list(dict.fromkeys(folder.resolve() for folder in folders))
        self._labels = _labels(self._folders)
        self._unnamed, self._ignored = unnamed, ignored
        self._numbered, self._mask_more = numbered, mask_more
        self._pids = {number for call in earlier for number in (call.process, call.pid)}
        self._times: Counter[tuple[CallKind, str]] = Counter()

    def name(self, call: Call) -> Effect | None:
        """Return the system call with its name; None if it does not belong to the pipeline.

        A call does not belong to the pipeline if its file or server is ignored, if the file lies outside of the watched
        folders, or if the call sends a Kafka request that stores nothing.
        """
        self._pids |= {call.process, call.pid}
        if call.kind is CallKind.EXIT:
            return Effect(call, "", 1)
        if call.line is not None and call.kind is CallKind.LINE:
            return self._counted(call, self._code(call, call.line))
        if call.kind is CallKind.SEND:
            file: str | None = call.target
        else:
            file = "/" if call.name == "sync" else self._inside(call.target) or self._inside(call.path)
        if file is None or self._is_ignored(file):
            return None
        if call.kind is CallKind.SEND and word(call.head, call.size) in ASKING:
            return None
        return self._counted(call, *self._masked(call, file))

    def _counted(self, call: Call, where: str, shown: str = "") -> Effect:
        self._times[call.kind, where] += 1
        return Effect(call, where, self._times[call.kind, where], shown)

    def _code(self, call: Call, line: Line) -> str:
        path = Path(line.file)
        folder = next((each for each in self._folders if path.is_relative_to(each)), path.parent)
        returns = " return" if call.name == RETURN else ""
        return f"{path.relative_to(folder)}:{line.number}{returns}"

    def _masked(self, call: Call, file: str) -> tuple[str, str]:
        if call.kind is CallKind.SEND:
            return f"{file} {word(call.head, call.size)}".rstrip(), ""
        where = self._mask(file)
        return (self._mask(file, entries=False) if where in self._numbered else where), file

    def _mask(self, file: str, *, entries: bool = True) -> str:
        return mask(self._mask_more(file), entries=entries, pids=self._pids)

    def _inside(self, path: str) -> str | None:
        for folder in self._folders:
            if path and Path(path).is_relative_to(folder):
                inside = str(Path(path).relative_to(folder))
                label = self._labels[folder]
                if label and folder != self._unnamed:
                    return str(Path(label, inside))
                others = (each for other, each in self._labels.items() if each and other != folder / each)
                # Else a file in a subfolder would have the name of a file in another watched folder.
                return f"./{inside}" if any(f"{inside}/".startswith(f"{each}/") for each in others) else inside
        return None

    def file(self, path: str) -> str | None:
        """Return a path relative to its watched folder, with ids and process numbers masked.

        The result is None if the file is ignored, or if it lies outside of the watched folders.
        """
        file = self._inside(path)
        return None if file is None or self._is_ignored(file) else self._mask(file, entries=False)

    def ids(self, path: str) -> tuple[bytes, ...]:
        """Return the UUIDs and hexadecimal ids in a path, without the path of its watched folder.

        Parts that `mask_more` replaces do not count, even if they happen to look like ids.
        """
        return ids_in(os.fsencode(self._mask_more(self._inside(path) or "")))

    def _is_ignored(self, file: str) -> bool:
        whole, name = file.removeprefix("./"), file.rpartition("/")[2]
        return any(fnmatch.fnmatch(whole, pattern) or fnmatch.fnmatch(name, pattern) for pattern in self._ignored)


def named_again(effects: Iterable[Effect], namer: Namer) -> list[Effect]:
    """Return the system calls with the names that `namer` gives them; a call that gets no name is left out."""
    renamed = ((namer.name(each.call), each.cuts) for each in effects)
    return [replace(each, cuts=cuts) for each, cuts in renamed if each is not None]


def unordered(effects: Iterable[Effect]) -> frozenset[str]:
    """Return the masked paths, such as `offsets/<n>`, whose files may be written in another order in the next run.

    In this run, their numbers did not ascend, or several threads of a process wrote the files. So the running number
    of a call (`#2`) could mean another file in each run.
    """
    entries: dict[tuple[CallKind, str], list[Effect]] = defaultdict(list)
    for each in effects:
        if "<n>" in each.where:
            entries[each.kind, each.where].append(each)
    return frozenset(where for (_, where), alike in entries.items() if not _in_order(alike))


def _in_order(alike: Sequence[Effect]) -> bool:
    files = list(dict.fromkeys(each.file for each in alike))
    if len(files) == 1:
        return True
    numbers = [[int(each) for each in _NUMBER.findall(file)] for file in files]
    threads = {each.call.pid for each in alike}
    processes = {each.call.process for each in alike}
    return numbers == sorted(numbers) and len(threads) == len(processes)
