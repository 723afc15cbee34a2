"""Names for the durable effects of a pipeline that are the same in every run that does the same.

A name is what was done, to which file or peer with ids masked, and which one of that kind it is. Masked is what differs
from run to run: ids, process numbers, times, temporary names, and the number of an entry of a log (`offsets/3`), whose
place in the order says as much. Numbers that tell files of one step apart (`part-00001`) stay: the order of such files
is chance. A message for a server is told by what it is, where its first bytes say so.
"""

import fnmatch
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from labkit.crashtest.blackbox.messages import ASKING, word
from labkit.host.syscalls.calls import Call, CallKind

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?<![0-9a-zA-Z])[0-9a-f]{32}(?![0-9a-zA-Z])")
_TEMPORARY = re.compile(
    r"(?<![A-Za-z0-9])(?:tmp(?!_[a-z_]+$)[a-z0-9_]{8}|tmp\.[A-Za-z0-9]{10}|sed[A-Za-z0-9]{6}$)(?![A-Za-z0-9_])"
)
"""As Python's `tempfile`, `mktemp` and `sed -i` name files."""
_ID = re.compile(r"(?<![0-9a-zA-Z])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}(?![0-9a-zA-Z])")
_LONG = re.compile(r"(?<!\d)[1-9]\d{7,}(?!\d)")
_NUMBER = re.compile(r"\d+")
_ENTRY = re.compile(r"^([._]*(?:v(?=\d+\.))?)\d+(?=$|\.|-<uuid>\.metadata)")
"""The number of an entry of a log: the whole name, up to what follows a dot (`.3.<uuid>.tmp`, `v2.metadata.json`)."""
_SUPER_JOURNAL = re.compile(r"(?<=-mj)[0-9A-F]{6}9[0-9A-F]{2}$")
"""As SQLite names the file that commits a transaction of several databases."""
_CHECKPOINT = re.compile(r"(?<=^chk-)\d+$")
_SAVEPOINT = re.compile(r"^savepoint-[0-9a-f]{6}-[0-9a-f]{12}$")
"""As Flink names a folder: six digits of the job's id, and twelve by chance."""
_ATTEMPT = re.compile(r"(?<=_)(attempt_<n>_\d+_[mr]_\d+_)\d+|^(\d{5}-)\d+(?=-<uuid>)")
"""Which try of a task it was: Hadoop's committers, and data files of Iceberg."""
_SMALLEST_PID = 100


def mask(text: str, *, entries: bool = True, pids: Iterable[int] = ()) -> str:
    """A path with what differs from run to run masked. `entries`: also numbers of entries; `pids`: process numbers."""
    own = {str(pid) for pid in pids if pid >= _SMALLEST_PID}
    *folders, last = text.split("/")
    parts = [_mask(part, own) for part in folders]
    masked = _mask(last, own)
    if entries:
        parts = [_CHECKPOINT.sub("<n>", part) for part in parts]
        masked = _ENTRY.sub(r"\1<n>", masked)
    return "/".join([*parts, masked])


def _mask(part: str, pids: set[str]) -> str:
    part = _SAVEPOINT.sub("savepoint-<hex>", part)
    part = _SUPER_JOURNAL.sub("<hex>", part)
    part = _UUID.sub("<uuid>", part)
    part = _TEMPORARY.sub("tmp<x>", part)
    part = _ID.sub("<hex>", part)
    part = _LONG.sub("<n>", part)
    part = _ATTEMPT.sub(r"\1\2<n>", f"_{part}" if "attempt_" in part else part)
    if "attempt_" in part:
        part = part.removeprefix("_")
    return _NUMBER.sub(lambda at: "<pid>" if at[0] in pids else at[0], part)


def family(where: str) -> str:
    """What files have in common that are alike, whatever their numbers."""
    return _NUMBER.sub("<n>", where)


def without_number(name: str) -> str:
    """The name of an effect without its number among those of its kind: `rename offsets/<n>`."""
    return name.rpartition(" #")[0] or name


@dataclass(frozen=True)
class Effect:
    """A call with a name that is the same in every run that does the same."""

    call: Call
    where: str
    """The masked path below its watched folder (of a rename the new one); of a SEND the peer and what its first bytes
    say, as `127.0.0.1:5432 COMMIT`; empty of EXIT."""
    occurrence: int
    """From 1, of this kind at this place in this run."""
    file: str = ""
    """What `where` was masked from; empty of SEND and EXIT."""

    @property
    def kind(self) -> CallKind:
        """What was done."""
        return self.call.kind

    @property
    def name(self) -> str:
        """As `rename offsets/<n> #2`."""
        if self.kind is CallKind.EXIT:
            return "exit"
        return f"{self.kind} {self.where} #{self.occurrence}"

    @property
    def family(self) -> str:
        """As `rename offsets/<n>`: what of many alike has in common, other numbers in the path included."""
        place = self.where if self.kind is CallKind.SEND else family(self.where)
        return f"{self.kind} {place}".rstrip()


class Namer:
    """Names the calls of one run, in their order."""

    def __init__(
        self, folders: Sequence[Path], ignored: Sequence[str] = (), numbered: frozenset[str] = frozenset()
    ) -> None:
        """`ignored`: patterns of names, of paths below a folder, or of peers that are no part of the pipeline.

        `numbered`: what `unordered` gave for a run before: places at which the numbers of entries stay.
        """
        self._folders = [folder.resolve() for folder in folders]
        self._ignored = ignored
        self._numbered = numbered
        self._pids: set[int] = set()
        self._times: Counter[tuple[CallKind, str]] = Counter()

    def name(self, call: Call) -> Effect | None:
        """The effect that a call is; None if it lies in no watched folder, or is to be ignored."""
        self._pids |= {call.process, call.pid}
        if call.kind is CallKind.EXIT:
            return Effect(call, "", 1)
        file = call.target if call.kind is CallKind.SEND else self._below(call)
        if file is None or self._is_ignored(file):
            return None
        if call.kind is CallKind.SEND and word(call.head, call.size) in ASKING:
            return None
        where, shown = self._masked(call, file)
        self._times[call.kind, where] += 1
        return Effect(call, where, self._times[call.kind, where], shown)

    def _masked(self, call: Call, file: str) -> tuple[str, str]:
        if call.kind is CallKind.SEND:
            return f"{file} {word(call.head, call.size)}".rstrip(), ""
        where = mask(file, pids=self._pids)
        if where in self._numbered:
            where = mask(file, entries=False, pids=self._pids)
        return where, file

    def _below(self, call: Call) -> str | None:
        if call.name == "sync":
            return "/"
        for path in (call.target, call.path):
            for folder in self._folders:
                if path and Path(path).is_relative_to(folder):
                    inside = str(Path(path).relative_to(folder))
                    several = len(self._folders) > 1
                    return f"{folder.name}/{inside}" if several else inside
        return None

    def _is_ignored(self, file: str) -> bool:
        name = file.rpartition("/")[2]
        return any(fnmatch.fnmatch(file, pattern) or fnmatch.fnmatch(name, pattern) for pattern in self._ignored)


def unordered(effects: Iterable[Effect]) -> frozenset[str]:
    """Places at which a masked name hides an order that is chance: entries out of order, or of several threads.

    Whoever names another run of the same pipeline hands them to its `Namer`.
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
