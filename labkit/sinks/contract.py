"""What a sink strategy is: how it pre-commits in a task, commits on the driver, and resolves what a crash left.

The names are Flink's (TwoPhaseCommitSinkFunction: begin, preCommit, commit, abort, recoverAndCommit, recoverAndAbort).
A strategy knows its store's capability and nothing of Spark, of checkpoints, or of which order commits come in:
that is `labkit.sinks.coordinator`.
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
from labkit.core.strategies import Strategy
from labkit.stores.contract import Handle, Transaction

StoreT = TypeVar("StoreT")
ItemT = TypeVar("ItemT")


class Vote(NamedTuple):
    """A participant's yes: what one task hands to the coordinator when it has pre-committed.

    `handle` names the task's transaction or log. `rows` are the rows themselves where the driver writes them
    (batch_marker); everywhere else they are in the store already, and this is empty.
    """

    handle: Handle
    rows: tuple[Observation, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The vote as plain data, for a commit message or a handle file."""
        return {"handle": str(self.handle), "rows": [list(row) for row in self.rows]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Vote":
        """The vote that `to_json` gave."""
        return cls(Handle.parse(data["handle"]), tuple(Observation(*row) for row in data["rows"]))


class Resolution(NamedTuple):
    """One step of recovery about one transaction or log in doubt, and the sentence that says so.

    `carry_out` returns None, or another sentence where the step has turned out to be impossible for ever, because a
    store did not keep its promise.
    """

    sentence: str
    carry_out: Callable[[], str | None]


@dataclass
class Sink(ABC, Generic[StoreT]):
    """One strategy at work on one store for one query.

    `log` is a folder of the sink's own beside the engine's checkpoint; `incarnation` counts the query's drivers.
    """

    store: StoreT
    query: str
    incarnation: int
    log: Path
    reach: Reach = field(default=pass_by)

    strategy: ClassVar[Strategy]
    capability: ClassVar[str]
    bears_speculation: ClassVar[bool] = False
    """Whether two attempts at one task may run at once (spark.speculation) without their rows being mixed."""

    @abstractmethod
    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Writes the rows of one task as far as can be promised; runs in the task. None: nothing to commit."""

    def gathered(self, batch: int, votes: Sequence[Vote]) -> AbstractContextManager[None]:
        """A block around the commit, for what the driver has open meanwhile; only batch_marker has anything."""
        return nullcontext()

    def commit(self, batch: int, votes: Sequence[Vote]) -> None:
        """Makes the batch visible; runs on the driver. A strategy whose rows are visible already does nothing."""

    def drop_earlier(self, handle: Handle) -> None:
        """Drops what earlier attempts at the task of this handle have open or prepared, before it begins.

        An executor that died leaves such transactions, and they may hold locks that this attempt would wait for.
        """

    def drop_losers(self, batch: int, votes: Sequence[Vote]) -> None:
        """Drops what attempts without a vote have left in this batch and earlier ones, once the votes are taken."""

    def resolutions(self, decided: Sequence[tuple[int, Sequence[Vote]]]) -> list[Resolution]:
        """The steps that a restarted driver takes before it replays: finish decided batches, drop everything else."""
        return []


class DeferredSink(Sink[StoreT]):
    """A strategy whose rows stay invisible until it is told to commit: the log, and two-phase commit."""

    @abstractmethod
    def begin(self, handle: Handle) -> Transaction:
        """Opens what the rows of one task are written into."""

    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Writes all rows, then seals them. A task without rows takes no part."""
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
        """Passes the rows on; the failpoint in the middle of a write is passed after the first."""
        return announce_first_write(rows, self.reach, batch)

    def in_halves(self, items: Sequence[ItemT], batch: int) -> Iterator[Sequence[ItemT]]:
        """Passes the items on in two halves; the failpoint in the middle of a commit is passed between them.

        One item cannot be half done, so a commit of a single participant or row has no middle.
        """
        half = len(items) // 2
        if half:
            yield items[:half]
            self.reach(FailPoint.MID_COMMIT, batch)
        yield items[half:]


CHUNK = 1_000
"""Rows that are written together where it makes no difference to a reader."""


def chunked(rows: Iterator[ItemT], distinct: Callable[[ItemT], object] = id) -> Iterator[list[ItemT]]:
    """The rows in lists, for a consumer that writes each list before it asks for the next.

    The first row comes alone, since a failpoint lies behind it, then at most `CHUNK` together; rows of which
    `distinct` says the same are never in one list.
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
    """Passes the rows on to a consumer that writes each before it asks for the next.

    When the consumer comes back for the second row, the first has been written: that is the failpoint.
    """
    rest = iter(rows)
    for first in islice(rest, 1):
        yield first
        reach(FailPoint.MID_WRITE, batch)
    yield from rest
