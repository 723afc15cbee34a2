"""One small protocol for each capability of a store (a database, a topic, a folder), and the names of transactions.

A sink requires one capability, such as upserts by key; a store implements the protocol of each capability that it
really has. The protocols know nothing of Spark, of crashes, or of the order of batches.
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
    """The unique name of one transaction, with which any process can finish it even after the writer's death.

    `incarnation` is the number of the driver that wrote (1 for the first driver of the query, 2 after a restart).
    `attempt` is the number of the task attempt, so two attempts at one task have two transactions.
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
        """Parse the text that `str` returns for a handle. Raises `InvalidInput` for any other text."""
        match = _HANDLE.fullmatch(text)
        if match is None:
            raise InvalidInput(f"{text!r} is not the name of a transaction; write it as in running-b0-p0-i1-a0.")
        query, *numbers = match.groups()
        return cls(query, *map(int, numbers))


class LostTransaction(JobFailed):
    """Raised at a commit if the store has dropped a pre-committed transaction, so that its rows are lost."""


@runtime_checkable
class Store(Protocol):
    """An external system to which a sink writes. This base protocol reports the rows that readers could have seen."""

    def history(self) -> Iterator[Observation]:
        """Yield every row that was ever visible to readers, also replaced rows, in the order in which they appeared."""

    def hidden(self) -> Iterator[Observation]:
        """Yield the rows of open and pre-committed transactions, which readers do not see yet."""

    def close(self) -> None:
        """Close files and connections. The store must not be used afterwards."""


class Shown(NamedTuple):
    """The times at which a group of rows was completely in the store, and at which readers could see it.

    Times are in seconds since 1970, by the store's clock.
    """

    at: Span | None = None
    """When the rows became visible; None if unknown."""
    ready: Span | None = None
    """When the rows were complete in a pre-committed transaction; None if unknown, or without a transaction."""
    at_once: bool = False
    """Whether the rows were visible as soon as they were complete in the store."""

    @classmethod
    def noted(cls, at: float | None, ready: float | None) -> "Shown":
        """Return a `Shown` for the two times that a store has recorded for some rows, both in seconds since 1970.

        `at` is the time at which the rows became visible; None means unknown. `ready` is the time at which the last row
        was in the two-phase transaction (the pre-commit, or shortly before). None means that the rows were written
        without a two-phase transaction, so they were visible at once.
        """
        if at is None:
            return cls()
        if ready is None:
            return cls(Span.exactly(at), at_once=True)
        return cls(Span.exactly(at), Span.exactly(ready))


Tell = Callable[[Shown], None]
"""A function for times: a generator of rows calls it with some times before it yields the rows to which they apply."""


@runtime_checkable
class Clocked(Protocol):
    """A store that records when its rows became visible or were pre-committed."""

    def clocked_history(self, tell: Tell) -> Iterator[Observation]:
        """Yield the rows of `history`. Before each group of rows with the same times, call `tell` with these times."""

    def waiting(self) -> Iterator[tuple[Observation, Span]]:
        """Yield (row, time of its pre-commit) for each row that is pre-committed but still hidden.

        A store that cannot tell which hidden rows are pre-committed yields all hidden rows, with the times of their
        writes.
        """


@runtime_checkable
class Appendable(Protocol):
    """A store in which rows can be appended without a transaction, so that readers see them at once."""

    def append(self, *rows: Observation) -> None:
        """Append the rows in the given order, in one atomic step if the store supports atomic appends.

        After the call the rows survive the death of this process.
        """


@runtime_checkable
class Keyed(Protocol):
    """A store with one current row for each key: a write replaces this row, and readers see the new row at once."""

    def upsert(self, *rows: Observation) -> None:
        """Write each row in place of the earlier row of its key, in one atomic step if the store supports this.

        The rows of one call must have distinct keys. After the call the rows survive the death of this process.
        """


@runtime_checkable
class Atomic(Protocol):
    """A store that can commit the rows of a batch and a marker atomically, in one transaction of one writer.

    The marker is the pair (query, batch). It records that the batch is committed, so that a restarted job can skip it.
    """

    def has_marker(self, query: str, batch: int) -> bool:
        """Return whether the batch is committed."""

    def transaction(self, handle: Handle) -> AbstractContextManager[Callable[[Observation], None]]:
        """Open a transaction for a `with` block, which gets a function that writes one row.

        The end of the block commits the rows together with the batch's marker. After an exception or a crash inside the
        block, neither is in the store. Raises `JobFailed` if the batch's marker is already committed.
        """


class Transaction(Protocol):
    """An open transaction with one writer. Readers do not see its rows until some process commits the transaction."""

    def write(self, row: Observation) -> None:
        """Write one row into the transaction."""

    def prepare(self) -> None:
        """Pre-commit: make the rows durable, but keep them hidden. Then any process can commit them by the handle."""


@runtime_checkable
class Transactional(Protocol):
    """A store for two-phase commit: any process can commit a pre-committed transaction, even after its writer died."""

    def begin(self, handle: Handle) -> Transaction:
        """Open a transaction with the name `handle`. The name may be reused only after an abort."""

    def commit(self, handle: Handle) -> None:
        """Commit a prepared transaction; do nothing if it is already committed.

        Raises `JobFailed` if the transaction is neither prepared nor committed, and `LostTransaction` if the store
        dropped the transaction after its pre-commit.
        """

    def abort(self, handle: Handle) -> None:
        """Abort an open or prepared transaction; do nothing if it is already aborted or committed."""

    def prepared(self, query: str) -> list[Handle]:
        """Return the handles of all unfinished (open or prepared) transactions of the query, in ascending order.

        Open transactions are included because their writers may be dead and would never abort them.
        """


@runtime_checkable
class Fencing(Protocol):
    """A store that can reject the writes of an old driver, which may still run after a new driver has replaced it."""

    def fence(self, query: str, incarnation: int) -> None:
        """From now on, reject new transactions of drivers of the query with a number smaller than `incarnation`.

        A two-phase transaction that such a driver has already begun stays as it is; recovery commits or aborts it.
        Raises `JobFailed` if a driver with a greater number has called this method before.
        """


def fenced(query: str, incarnation: int) -> JobFailed:
    """Return the error for a driver that still writes although a later driver of the query has replaced it.

    `incarnation` is the number of the driver that writes.
    """
    return JobFailed(
        f"Driver {incarnation} of the query {query} was replaced by a later one and may not write any more."
    )


def exists_already(place: object, handle: Handle) -> JobFailed:
    """Return the error for opening a transaction whose handle is already used in the store at `place`."""
    return JobFailed(f"{place}: the transaction {handle} exists already; begin one with another handle.")


def not_prepared(place: object, handle: Handle) -> JobFailed:
    """Return the error for the commit of a transaction that the store at `place` has not prepared."""
    return JobFailed(f"{place}: the transaction {handle} is not prepared, so it cannot be committed.")


def already_committed(handle: Handle) -> JobFailed:
    """Return the error for a writer whose batch another writer has committed."""
    return JobFailed(
        f"Batch {handle.batch} of the query {handle.query} is committed already, so its rows are not written again."
    )


@runtime_checkable
class Expiring(Protocol):
    """A store whose server aborts transactions that stay open for too long, even if they are prepared."""

    def expire_after(self, seconds: float) -> None:
        """Set how many seconds a transaction may stay open after its first row."""

    def unfinished(self) -> list[str]:
        """Return the names of this store's transactions that the server reports as unfinished."""

    def expired(self) -> list[str]:
        """Return the names of this store's transactions that the server has aborted because of a timeout."""


@runtime_checkable
class ServerBacked(Protocol):
    """A store whose rows are in a server, such as PostgreSQL, and survive there when local files are deleted."""

    def check(self, capability: str) -> None:
        """Raise a `LabError` unless the server is usable and supports this capability (the name of a protocol)."""

    def destroy(self) -> None:
        """Delete all rows and transactions of the store in its server; do nothing if the store is empty."""
