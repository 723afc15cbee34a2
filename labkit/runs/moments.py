"""Determine when the rows of a run became visible: the exact time if the store records it, otherwise an interval.

A row that a reader found right after a kill became visible before that kill, and every other row after it. A row of
batch N cannot be visible before `offsets/N` was written or before its driver's query started; if the sink never holds
rows back, the row is visible before `commits/N`. Times are in seconds since the epoch, by the clocks of this machine
and of the store's server.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from labkit.core.explanation import Explanation
from labkit.core.exposure import Exposure, Sight, Span, exposure
from labkit.core.records import Observation, Record
from labkit.core.strategies import Pending, Strategy
from labkit.host import durable
from labkit.runs.run import Run
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.options import CheckpointFate
from labkit.stores.contract import Clocked, Shown, Store

MOST_WAITING = 10_000
"""The largest number of pre-committed, still hidden rows at a crash whose times are kept."""


@dataclass(frozen=True)
class Frame:
    """The times of kills, batches and starts in a run, in seconds since 1970.

    If the store did not record when a row became visible, these times give the earliest and the latest possible moment.
    """

    begun: float | None
    ended: float
    kills: Sequence[tuple[int, float | None]]
    """For each crash after which a reader looked: the number of visible rows, and the time of the first SIGKILL."""
    planned: Mapping[int, float]
    """The time at which the driver wrote `offsets/N`, by batch."""
    noted: Mapping[int, float]
    """The time at which `commits/N` was written, by batch; empty if the sink may make rows visible after that."""
    started: Mapping[int, float] = field(default_factory=dict)
    """The time at which each driver's query started, by driver number; its rows cannot have become visible earlier."""

    def bound(self, place: int, row: Observation, shown: Shown) -> Shown:
        """Return the times at which a row was complete in the store and at which it became visible.

        They come from `shown`. If the store did not record when the row became visible, the events of the run give the
        earliest and the latest possible moment. `place` is the position of the row (from 0) in the order in which rows
        became visible.
        """
        at = shown.at or self._between(place, row)
        return Shown(at, at if shown.at_once else shown.ready, shown.at_once)

    def _between(self, place: int, row: Observation) -> Span | None:
        kills = [(rows, at) for rows, at in self.kills if at is not None]
        before = [self.begun, self.planned.get(row.batch), self.started.get(row.incarnation)]
        before += [at for rows, at in kills if place >= rows]
        after = [self.ended, self.noted.get(row.batch, self.ended)]
        after += [at for rows, at in kills if place < rows]
        times = [moment for moment in before if moment is not None]
        if not times or max(times) > min(after):
            return None  # clocks that disagree give no bounds
        return Span(max(times), min(after))


def timed(
    run: Run,
    explanation: Explanation,
    expected: Iterable[Record],
    rows: Sequence[Observation],
    shown: Sequence[Shown],
    *,
    hidden: Iterable[Observation],
) -> tuple[Explanation, Exposure]:
    """Write a file that says when each row became visible; return a more precise explanation, and the exposure.

    The returned explanation also says how many seconds after the start of the run the row `explanation.row` became
    visible, if this row and the time are known. The exposure says for how long readers could have read wrong values.
    `expected` are the rows that the run should output, `shown` has the times of each visible row in `rows`, and
    `hidden` are the rows that were hidden at the end.
    """
    now = time.time()
    bounds = frame(run, now)
    bounded = [bounds.bound(place, row, each) for place, (row, each) in enumerate(zip(rows, shown, strict=True))]
    write(run.folder.moments, bounded)
    at = bounded[explanation.rows].at if explanation.row is not None else None
    if at is not None and bounds.begun is not None:
        least, most = (f"{moment - bounds.begun:.2f}" for moment in at)
        explanation = replace(explanation, at=f"at {least} s" if least == most else f"between {least} and {most} s")
    strategy = run.scenario.strategy
    return explanation, exposed(expected, rows, bounded, now, run.ready, strategy=strategy, hidden=hidden)


def frame(run: Run, ended: float) -> Frame:
    """Collect the times of kills, batches and starts in a run that ended at `ended` (seconds since 1970)."""
    config, checkpoint = run.folder.config, Checkpoint(run.folder.checkpoint)
    begun = config.stat().st_ctime if config.exists() else None
    killed = [crash.get("killed_at") for crash in run.crashes if not crash.get("executor")]
    kills = [(rows, at if isinstance(at, float) else None) for (_, rows), at in zip(run.readings, killed, strict=False)]
    planned: Mapping[int, float] = {}
    noted: Mapping[int, float] = {}
    # After the checkpoint was deleted, other batches have the same numbers.
    if run.scenario.checkpoint is not CheckpointFate.DELETED:
        planned = _written(checkpoint.folder / "offsets", checkpoint.offset_log())
        if run.scenario.strategy.facts.pending is Pending.NOWHERE:
            noted = _written(checkpoint.folder / "commits", checkpoint.commit_log())
    return Frame(begun, ended, kills, planned, noted, run.started)


def _written(folder: Path, batches: Iterable[int]) -> dict[int, float]:
    # Spark writes an entry to a temporary file and renames it, which changes only the ctime of the inode.
    return {batch: (folder / str(batch)).stat().st_ctime for batch in batches}


def waiting(store: Store, numbered: Callable[[Iterable[Observation]], Iterator[Observation]]) -> dict[int, Span] | None:
    """Return a dict from offset to the time of the pre-commit, for all rows that are still hidden.

    `numbered` gives each row the offset of its expected row. Returns None if the store does not record such times, or
    for more than `MOST_WAITING` rows.
    """
    if not isinstance(store, Clocked):
        return None
    # One more than is kept, to notice whether there are more.
    some = list(islice(store.waiting(), MOST_WAITING + 1))
    if len(some) > MOST_WAITING:
        return None
    spans: dict[int, Span] = {}
    rows = numbered(row for row, _ in some) if some else iter(())
    for row, (_, ready) in zip(rows, some, strict=True):
        spans[row.offset] = min(ready, spans.get(row.offset, ready))
    return spans


def exposed(
    expected: Iterable[Record],
    rows: Iterable[Observation],
    shown: Sequence[Shown],
    ended: float,
    ready: Mapping[int, Span] | None,
    *,
    strategy: Strategy,
    hidden: Iterable[Observation] = (),
) -> Exposure:
    """Return how long readers could have read wrong values of each key, and how long correct rows were hidden.

    The unit is seconds. `expected` are the rows that the run should output, `rows` are the visible rows, and `shown`
    has the times of each row in `rows`. `hidden` are the rows that were hidden at the end of the run, at the time
    `ended` (seconds since 1970). `ready` maps offsets of rows to the times of their pre-commits; it is None if these
    times are unknown.
    """
    # A write-ahead log keeps hidden rows outside of the store, so the store does not know them.
    is_timed = strategy.facts.pending is not Pending.LOG and ready is not None
    sights = (Sight(row, each.at, each.ready if is_timed else None) for row, each in zip(rows, shown, strict=True))
    return exposure(expected, sights, Span.exactly(ended), keyed=strategy.facts.replaces, ready=ready, held=hidden)


def write(path: Path, shown: Sequence[Shown]) -> None:
    """Write a file of JSON lines that says when each row was complete in the store and when it became visible.

    Consecutive rows with equal times share one line; its field `row` is the position of the first, from 0.
    """
    lines, before = [], None
    for place, each in enumerate(shown):
        if each != before:
            entry = {"row": place, "at": each.at, "ready": each.ready}
            lines.append(json.dumps(entry) + "\n")
            before = each
    durable.replace(path, "".join(lines))
