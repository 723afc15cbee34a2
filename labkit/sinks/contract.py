"""The contract of a sink strategy: pre-commit in a task, commit on the driver, resolve what a crash left behind.

The names are Flink's (TwoPhaseCommitSinkFunction: begin, preCommit, commit, abort, recoverAndCommit, recoverAndAbort).
A strategy uses its store's protocol. It knows neither Spark nor checkpoints, and the commit order belongs to
`labkit.sinks.coordinator`.
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
    """A task's yes vote: the message that it sends to the coordinator after its pre-commit.

    `handle` names the task's transaction or log. `rows` contains the rows themselves if the driver writes them
    (batch_marker); otherwise it is empty, because the rows are in the store already.
    """

    handle: Handle
    rows: tuple[Observation, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the vote as plain data, for a commit message or a handle file."""
        return {"handle": str(self.handle), "rows": [list(row) for row in self.rows]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Vote":
        """Return the vote that `to_json` encoded."""
        return cls(Handle.parse(data["handle"]), tuple(Observation(*row) for row in data["rows"]))


class Resolution(NamedTuple):
    """One step of recovery: how to finish or drop one undecided transaction or log, and the sentence that reports it.

    `carry_out` returns None, or another sentence if the step can never succeed because a store broke its promise.
    """

    sentence: str
    carry_out: Callable[[], str | None]


@dataclass
class Sink(ABC, Generic[StoreT]):
    """Base class of the sinks: one strategy, writing one query to one store.

    `log` is the sink's own folder beside the engine's checkpoint; `incarnation` numbers the query's drivers.
    """

    store: StoreT
    query: str
    incarnation: int
    log: Path
    reach: Reach = field(default=pass_by)

    bears_speculation: ClassVar[bool] = False
    """Whether two attempts of one task may run at once (spark.speculation) without mixing their rows."""

    @abstractmethod
    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Write one task's rows without committing them, and return its vote; None if nothing is left to commit.

        This runs in the task.
        """

    def gathered(self, batch: int, votes: Sequence[Vote]) -> AbstractContextManager[None]:
        """Return a block around the commit.

        In it, batch_marker keeps its one transaction open; other sinks do nothing.
        """
        return nullcontext()

    def commit(self, batch: int, votes: Sequence[Vote]) -> None:
        """Make the batch visible. This runs on the driver; strategies whose rows are visible already do nothing."""

    def drop_earlier(self, handle: Handle) -> None:
        """Abort what earlier attempts of the same task left open or prepared; call this before an attempt begins.

        A dead executor leaves such transactions behind, and they may hold locks that this attempt would wait for.
        """

    def drop_losers(self, batch: int, votes: Sequence[Vote]) -> None:
        """Abort the transactions of attempts without a vote, in this batch and earlier ones.

        Call this once all votes are in.
        """

    def resolutions(self, decided: Sequence[tuple[int, Sequence[Vote]]]) -> list[Resolution]:
        """Return a restarted driver's steps before it replays: finish decided batches, abort everything else.

        `decided` are the decided batches, each with its votes.
        """
        return []


SinkClass = type[Sink[Any]]
"""The type of `SINK`, by which `labkit.sinks` finds the sink in a strategy's module.

Assigning a class that lacks an abstract method to such a name is a type error.
"""


class DeferredSink(Sink[StoreT]):
    """A strategy whose rows stay invisible until the coordinator commits: the write-ahead log and two-phase commit."""

    @abstractmethod
    def begin(self, handle: Handle) -> Transaction:
        """Open the transaction or log for the rows of one task."""

    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Write all rows, then seal them. A task without rows does not participate."""
        # Opening a transaction for a task that has nothing to write would cost a vote
        # and a commit, and give a participant that nobody can see.
        first = next(rows, None)
        if first is None:
            return None
        transaction = self.begin(handle)
        for row in self.announced(chain([first], rows), handle.batch):
            transaction.write(row)
        self.reach(FailPoint.BEFORE_PRE_COMMIT, handle.batch)
        transaction.prepare()
        return Vote(handle)

    def announced(self, rows: Iterable[Observation], batch: int) -> Iterator[Observation]:
        """Yield the rows, and pass the failpoint in the middle of a write after the first row is written."""
        return announce_first_write(rows, self.reach, batch)

    def in_halves(self, items: Sequence[ItemT], batch: int) -> Iterator[Sequence[ItemT]]:
        """Yield the first half of the items, pass the failpoint in the middle of a commit, then yield the second half.

        With a single item there is no middle, so the failpoint is not passed.
        """
        half = len(items) // 2
        if half:
            yield items[:half]
            self.reach(FailPoint.MID_COMMIT, batch)
        yield items[half:]


CHUNK = 1_000
"""The number of rows that are written together if a reader cannot see the difference."""


def chunked(rows: Iterator[ItemT], distinct: Callable[[ItemT], object] = id) -> Iterator[list[ItemT]]:
    """Yield the rows in lists, for a consumer that writes each list before it asks for the next.

    The first row comes alone, because a failpoint follows it; later lists have at most `CHUNK` rows. Rows for which
    `distinct` returns the same value are never in one list.
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
    """Yield the rows, and pass the failpoint "in the middle of a write" once the consumer has written the first one.

    The consumer writes each row before it asks for the next, so when it asks for the second, the first is written.
    """
    rest = iter(rows)
    for first in islice(rest, 1):
        yield first
        reach(FailPoint.MID_WRITE, batch)
    yield from rest
