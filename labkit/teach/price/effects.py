"""Count the disk operations of a sink for one batch, by watching its system calls: files, syncs, renames, bytes.

The counts are exact and the same on every machine. If system calls cannot be watched here, labkit shows counts from
another machine (`counted.json`) and says so.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.words import nearest
from labkit.crashtest.blackbox.xray import Recorder
from labkit.host.processes.own_python import own_python
from labkit.host.syscalls.calls import Call, CallKind
from labkit.host.syscalls.support import supported
from labkit.host.syscalls.watching import watch
from labkit.teach.price.batch import BEGIN, END
from labkit.teach.price.place import scratch
from labkit.view.card import Tabled, para

SINKS = ("append", "batch_marker", "wal", "two_phase")
"""The lab's sinks that can write to plain files."""
SIZES = (4, 400)
"""The default numbers of rows in a batch."""
MOST_ROWS = 10_000
LIMIT = 60.0
"""The number of seconds without a system call after which the command counts as stuck."""
HERE = "counted on this machine"
ELSEWHERE = "System calls cannot be watched here, so these are counts from another machine."


class Counts(NamedTuple):
    """How many disk operations of each kind a sink performs to write one batch."""

    files: int
    """The number of files created."""
    syncs: int
    renames: int
    bytes: int
    """The number of bytes written, into logs and into files of rows."""


class Effects(Tabled, dict[tuple[str, int], Counts]):
    """The results of `lab.count_effects`, displayed as a card.

    A dict from a pair (sink, rows in a batch) to the numbers of disk operations.
    """

    title = "What one batch does to the disk"
    note: str = HERE

    @property
    def sinks(self) -> list[str]:
        """The names of the sinks that were counted."""
        return list(dict.fromkeys(sink for sink, _ in self))

    @property
    def sizes(self) -> list[int]:
        """The measured batch sizes (numbers of rows), ascending."""
        return sorted({rows for _, rows in self})

    def growing(self, sink: str) -> list[str]:
        """Return which counts, such as `files`, are higher for the largest batch than for the smallest one."""
        small, large = self[sink, self.sizes[0]], self[sink, self.sizes[-1]]
        return [name for name, less, more in zip(Counts._fields, small, large, strict=True) if more > less]

    def _head(self) -> Sequence[str]:
        return "sink", "rows", "files", "syncs", "renames", "bytes"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for (sink, rows), counts in self.items():
            yield sink, f"{rows:,}", *(f"{each:,}" for each in counts)

    def _parts(self) -> Iterable[str]:
        return [*super()._parts(), para(self.note) if self.note != HERE else ""]


@takes("lab.count_effects(sizes=[4, 400])")
def count_effects(sinks: Sequence[str] = SINKS, *, sizes: Sequence[int] = SIZES) -> Effects:
    """Count the files, syncs, renames and bytes with which each sink writes one batch.

    `sizes` are numbers of rows in the batch. If this machine cannot trace system calls, returns recorded counts. Raises
    `InvalidInput` for a sink that cannot write to plain files, or for a size out of range.
    """
    if unknown := [each for each in sinks if each not in SINKS]:
        raise InvalidInput(
            f"lab.count_effects(): the sink {unknown[0][:40]!r} cannot write to plain files; "
            f"{nearest(unknown[0][:40], list(SINKS))}"
        )
    if not all(2 <= each <= MOST_ROWS for each in sizes):
        raise InvalidInput(f"lab.count_effects(): a batch must have 2 to {MOST_ROWS:,} rows, as in sizes=[4, 400].")
    wanted = [(sink, rows) for sink in sinks for rows in sorted(set(sizes))]
    if supported():
        return _elsewhere(wanted)
    return _count(wanted)


def kept() -> Mapping[tuple[str, int], Counts]:
    """Return recorded numbers of disk operations, which are shipped with labkit.

    The dict maps a pair (sink, rows in a batch) to the numbers of files, syncs, renames and bytes for one batch.
    """
    text = files("labkit.teach.price").joinpath("counted.json").read_text("utf-8")
    return {
        (sink, int(rows)): Counts(*counts)
        for sink, by_rows in json.loads(text).items()
        for rows, counts in by_rows.items()
    }


def _elsewhere(wanted: Sequence[tuple[str, int]]) -> Effects:
    recorded = kept()
    result = Effects((each, recorded[each]) for each in wanted if each in recorded)
    result.note = ELSEWHERE
    if len(result) < len(wanted):
        raise InvalidInput(
            f"lab.count_effects(): labkit has no recorded counts for some of these sizes; write sizes={list(SIZES)}. "
            f"New counts are not possible here: {supported()}"
        )
    return result


def _count(wanted: Sequence[tuple[str, int]]) -> Effects:
    cases = {f"{sink}-{rows}": (sink, rows) for sink, rows in wanted}
    with scratch() as place:
        folder, output = place / "batches", place / "output"
        folder.mkdir()
        recorder = Recorder([folder], LIMIT)
        watched = watch(
            own_python("-c", _COMMAND, str(folder), *cases),
            folder=folder,
            environment=dict(os.environ),
            output=output,
            decide=recorder.decide,
            tick=recorder.tick,
        )
        if watched.status:
            raise JobFailed(
                "The command that writes the batches failed; call lab.count_effects() again. The end of its output: "
                f"{output.read_text('utf-8')[-300:]}"
            )
        calls = [each.call for each in recorder.effects]
        return Effects((key, _counts(_counted(calls, folder / case))) for case, key in cases.items())


_COMMAND = "import sys; from labkit.teach.price.batch import main; main(*sys.argv[1:])"


def _counted(calls: Sequence[Call], folder: Path) -> list[Call]:
    """Return the system calls on files in a folder after the creation of the file `BEGIN`, and before that of `END`."""
    inside = [each for each in calls if folder in Path(each.path).parents]
    new_paths = [each.path for each in inside if each.kind is CallKind.CREATE]
    if not {str(folder / BEGIN), str(folder / END)} <= set(new_paths):
        raise JobFailed(
            f"labkit did not see the system calls of the batch {folder.name}; call lab.count_effects() again."
        )
    places = [place for place, each in enumerate(inside) if each.path in (str(folder / BEGIN), str(folder / END))]
    return inside[places[0] + 1 : places[-1]]


def _counts(calls: Sequence[Call]) -> Counts:
    kinds = Counter(each.kind for each in calls)
    written = sum(each.size for each in calls if each.kind is CallKind.WRITE)
    created, synced, renamed = (kinds[each] for each in (CallKind.CREATE, CallKind.SYNC, CallKind.RENAME))
    return Counts(created, synced, renamed, written)
