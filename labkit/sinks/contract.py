"""The base classes of sinks: a sink pre-commits in a task, commits on the driver, and recovers after a crash.

The names are Flink's (TwoPhaseCommitSinkFunction: begin, preCommit, commit, abort, recoverAndCommit, recoverAndAbort).
A sink uses one protocol of its store, and knows neither Spark nor checkpoints; `labkit.sinks.coordinator` decides when
it commits.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from labkit.core.failpoints import FailPoint, Reach, pass_by
from labkit.core.records import Observation
from labkit.stores.contract import Handle, Transaction

StoreT = TypeVar("StoreT")
ItemT = TypeVar("ItemT")


class Vote(NamedTuple):
    """The message by which a task tells the coordinator, after its pre-commit, that its rows can be committed.

    `handle` names the task's transaction or log. `rows` contains the rows themselves if the driver writes them
    (batch_marker). Otherwise `rows` is empty, because the rows are already in the store or in a log file (wal).
    """

    handle: Handle
    rows: tuple[Observation, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the vote as a dictionary for JSON."""
        return {"handle": str(self.handle), "rows": [list(row) for row in self.rows]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Vote":
        """Return the vote that `to_json` encoded."""
        return cls(Handle.parse(data["handle"]), tuple(Observation(*row) for row in data["rows"]))


class Resolution(NamedTuple):
    """One step of a recovery: the commit or the abort of one transaction or log. `sentence` describes it for users.

    `carry_out` performs the step. It returns None or, if the store has lost the rows, a sentence about the loss.
    """

    sentence: str
    carry_out: Callable[[], str | None]


@dataclass
class Sink(ABC, Generic[StoreT]):
    """Base class of sinks. A sink writes the rows of one streaming query to one store.

    `log` is the sink's own directory in the checkpoint, and `incarnation` the number of the query's driver. The sink
    calls `reach` at each failpoint, where a crash test may kill the process.
    """

    store: StoreT
    query: str
    incarnation: int
    log: Path
    reach: Reach = field(default=pass_by)

    bears_speculation: ClassVar[bool] = False
    """Whether Spark may run two attempts of one task at once (spark.speculation) without mixing their rows."""

    @abstractmethod
    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Write the rows of one task, and return the task's vote to commit them; None if nothing is left to commit."""

    def gathered(self, batch: int, votes: Sequence[Vote]) -> AbstractContextManager[None]:
        """Return a context manager that the driver enters when all tasks have voted, and leaves before `commit`.

        The sink batch_marker writes all rows when the driver enters, and commits them when the driver leaves. Other
        sinks do nothing here.
        """
        return nullcontext()

    def commit(self, batch: int, votes: Sequence[Vote]) -> None:
        """On the driver, make the rows of a batch visible.

        A sink whose rows become visible earlier, for example as soon as they are written, does nothing here.
        """

    def drop_earlier(self, handle: Handle) -> None:
        """Before a task writes, abort its earlier attempts' open or prepared transactions, which may hold locks."""

    def drop_losers(self, batch: int, votes: Sequence[Vote]) -> None:
        """Abort the unfinished transactions of this and earlier batches, except those that a vote in `votes` names.

        The aborted transactions belong to task attempts whose rows are not used. The driver calls this when all votes
        of the batch have arrived.
        """

    def resolutions(self, decided: Sequence[tuple[int, Sequence[Vote]]]) -> list[Resolution]:
        """Return the steps of a new driver's recovery: commit the batches in `decided`, abort the rest.

        `decided` has a pair (batch, votes) for each batch that must be committed.
        """
        return []


SinkClass = type[Sink[Any]]
"""The type of the variable `SINK`, in which each strategy's module names its sink class.

mypy then reports a class that lacks an abstract method.
"""


class DeferredSink(Sink[StoreT]):
    """Base class of two sinks whose rows stay invisible until the commit: write-ahead log and two-phase commit."""

    @abstractmethod
    def begin(self, handle: Handle) -> Transaction:
        """Open the transaction or log for the rows of one task."""

    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Write all rows into a transaction or log, prepare it, and return the vote; None for a task without rows."""
        # A transaction without rows would cost a vote and a commit for nothing.
        first = next(rows, None)
        if first is None:
            return None
        transaction = self.begin(handle)
        for row in announce_first_write(chain([first], rows), self.reach, handle.batch):
            transaction.write(row)
        self.reach(FailPoint.BEFORE_PRE_COMMIT, handle.batch)
        transaction.prepare()
        return Vote(handle)

    def in_halves(self, items: Sequence[ItemT], batch: int) -> Iterator[Sequence[ItemT]]:
        """Yield the first half of the items, pass the failpoint `MID_COMMIT`, and yield the second half.

        A single item is yielded without the failpoint.
        """
        half = len(items) // 2
        if half:
            yield items[:half]
            self.reach(FailPoint.MID_COMMIT, batch)
        yield items[half:]


CHUNK = 1_000
"""The number of rows that a sink passes to its store in one call."""


def chunked(rows: Iterator[ItemT], distinct: Callable[[ItemT], object] = id) -> Iterator[list[ItemT]]:
    """Yield the rows in lists of at most `CHUNK`, for a caller that writes each list before it takes the next list.

    The first list has one row, because the failpoint `MID_WRITE` comes after the first row. No list has two rows with
    the same `distinct` value, because a store may refuse two rows with one key in one call.
    """
    yield from ([row] for row in islice(rows, 1))
    some: dict[object, ItemT] = {}
    for row in rows:
        if len(some) == CHUNK or distinct(row) in some:
            yield list(some.values())
            some = {}
        some[distinct(row)] = row
    if some:
        yield list(some.values())


def announce_first_write(rows: Iterable[Observation], reach: Reach, batch: int) -> Iterator[Observation]:
    """Yield the rows, and call `reach` for the failpoint `MID_WRITE` after the first row is written.

    This works only if the caller writes each row before it takes the next row.
    """
    rest = iter(rows)
    for first in islice(rest, 1):
        yield first
        reach(FailPoint.MID_WRITE, batch)
    yield from rest
