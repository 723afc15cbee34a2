"""One small protocol for each capability that a store (a database, a topic, a folder) may have; transaction names.

A sink strategy requires one capability; a store implements those that it really has. The protocols do not mention
Spark, failpoints or the order of batches.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, runtime_checkable

from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.exposure import Span
from labkit.core.records import Observation

_HANDLE = re.compile(
    r"(?P<query>[a-z0-9_]+)-b(?P<batch>\d+)-p(?P<partition>\d+)-i(?P<incarnation>\d+)-a(?P<attempt>\d+)"
)


class Handle(NamedTuple):
    """The name of one transaction: plain data, so that any process can finish the transaction.

    `incarnation` numbers the drivers that ran the query and `attempt` the task attempts of one driver, so a
    second attempt can neither be mistaken for the first nor abort it.
    """

    query: str
    batch: int
    partition: int
    incarnation: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.query}-b{self.batch}-p{self.partition}-i{self.incarnation}-a{self.attempt}"

    @classmethod
    def parse(cls, text: str) -> "Handle":
        """Return the handle that `str` produced. Raises `InvalidInput` for any other text."""
        match = _HANDLE.fullmatch(text)
        if match is None:
            raise InvalidInput(f"{text!r} is not a transaction name of the lab, such as running-b0-p0-i1-a0.")
        query, *numbers = match.groups()
        return cls(query, *map(int, numbers))


class LostTransaction(JobFailed):
    """The store has dropped a transaction after it was prepared, so a decided batch has lost rows."""


@runtime_checkable
class Store(Protocol):
    """The base protocol of all stores: every store can report what an outside reader could have seen."""

    def history(self) -> Iterator[Observation]:
        """Yield every row that was ever visible, in the order in which rows became visible."""

    def hidden(self) -> Iterator[Observation]:
        """Yield the rows of transactions that are neither committed nor aborted."""

    def close(self) -> None:
        """Close files and connections. The store must not be used afterwards."""


class Shown(NamedTuple):
    """The times at which rows became complete and visible, in seconds since 1970 by the store's clock."""

    at: Span | None = None
    """When the rows became visible; None if unknown."""
    ready: Span | None = None
    """When the rows were complete in a pre-committed transaction; None if unknown, or without a transaction."""
    at_once: bool = False
    """Whether the rows were visible as soon as they were complete in the store."""

    @classmethod
    def noted(cls, at: float | None, ready: float | None) -> "Shown":
        """Return the times that a store recorded as numbers, in seconds since 1970.

        `at` is when rows became visible; None means unknown. `ready` is when they were complete inside a transaction;
        None means that they were visible at once.
        """
        if at is None:
            return cls()
        if ready is None:
            return cls(Span.exactly(at), at_once=True)
        return cls(Span.exactly(at), Span.exactly(ready))


Tell = Callable[[Shown], None]
"""A callback: a generator of rows calls it with the times that hold for the rows that it yields next."""


@runtime_checkable
class Clocked(Protocol):
    """A store that records when rows became visible or were pre-committed. It reports an unknown time as None."""

    def clocked_history(self, tell: Tell) -> Iterator[Observation]:
        """Yield the rows of `history`; before each group of rows with the same times, call `tell` with these times."""

    def waiting(self) -> Iterator[tuple[Observation, Span]]:
        """Yield the hidden rows that were pre-committed, each with the time of its pre-commit.

        A store that cannot tell which hidden rows were pre-committed yields all of them with the time of their write.
        """


@runtime_checkable
class Appendable(Protocol):
    """A store to which writers add rows that are visible as soon as they are written."""

    def append(self, *rows: Observation) -> None:
        """Add rows in order, in one step if the store can; after that they survive the death of this process."""


@runtime_checkable
class Keyed(Protocol):
    """A store in which a row replaces the earlier row of its key, and is visible as soon as it is written."""

    def upsert(self, *rows: Observation) -> None:
        """Set the row of each key, in one step if the store can; the rows of one call have distinct keys.

        When this returns, the rows survive the death of the process.
        """


@runtime_checkable
class Atomic(Protocol):
    """A store in which one writer can put rows and a marker into one transaction.

    The marker (query, batch) records that the batch is in the store.
    """

    def has_marker(self, query: str, batch: int) -> bool:
        """Return whether a transaction with this marker has committed."""

    def transaction(self, handle: Handle) -> AbstractContextManager[Callable[[Observation], None]]:
        """Open a transaction that sets the marker (query, batch), and yield a function that writes one row into it.

        Leaving the `with` block commits everything at once; an exception or a crash inside it leaves no rows behind.
        Raises `JobFailed` if the marker already exists.
        """


class Transaction(Protocol):
    """One writer's open transaction, whose rows readers cannot see until somebody commits it by its handle."""

    def write(self, row: Observation) -> None:
        """Write one row into the transaction."""

    def prepare(self) -> None:
        """Pre-commit: when this returns, a later `commit` must succeed from any process."""


@runtime_checkable
class Transactional(Protocol):
    """A store whose transactions outlive their writer, so that any process can finish one by its handle."""

    def begin(self, handle: Handle) -> Transaction:
        """Open a transaction under a handle that was never used before."""

    def commit(self, handle: Handle) -> None:
        """Make a prepared transaction visible. The call is idempotent.

        Raises `JobFailed` if the transaction is neither prepared nor committed, and `LostTransaction` if the
        store dropped it after it was prepared.
        """

    def abort(self, handle: Handle) -> None:
        """Drop an open or prepared transaction. The call is idempotent and never undoes a commit."""

    def prepared(self, query: str) -> list[Handle]:
        """Return every unfinished transaction of `query`, sorted by the numbers in their names.

        The list includes open transactions whose writer may be dead, because nobody else would ever remove them.
        """


@runtime_checkable
class Fencing(Protocol):
    """A store that refuses transactions of a replaced driver itself, wherever that driver's processes still run."""

    def fence(self, query: str, incarnation: int) -> None:
        """Refuse from now on every transaction that earlier incarnations of the query begin.

        Transactions that they have already begun are left to recovery. Raises `JobFailed` if a later incarnation has
        already fenced this one.
        """


def fenced(query: str, incarnation: int) -> JobFailed:
    """Return the error for a replaced driver that still tries to write."""
    return JobFailed(
        f"Driver {incarnation} of the query {query} was replaced by a later one and may not write any more."
    )


@runtime_checkable
class Expiring(Protocol):
    """A store that aborts transactions, prepared or not, that stay open for too long."""

    def expire_after(self, seconds: float) -> None:
        """Set how many seconds a transaction may stay open, counted from its first row."""

    def unfinished(self) -> list[str]:
        """Return the transactions that the server itself lists as open."""

    def expired(self) -> list[str]:
        """Return the unfinished transactions that the server itself reports as aborted."""


@runtime_checkable
class ServerBacked(Protocol):
    """A store whose rows live in a server; deleting its location, which only names the store, does not delete them."""

    def check(self, capability: str) -> None:
        """Ask the server, before a run, whether it supports this capability, given as the name of a protocol above.

        Writes nothing. Raises a `LabError` if the server lacks it or cannot be used.
        """

    def destroy(self) -> None:
        """Drop every transaction and every row of the store. The call is idempotent."""
