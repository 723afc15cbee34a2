"""What an external system can do, as small protocols, and the name of a transaction in it.

A sink strategy asks for one capability; a store offers those that it really has. Nothing here knows of Spark,
of failpoints, or of how batches are ordered.
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
    """The name of one transaction: plain data, so that any process may finish it.

    `incarnation` counts the drivers that ran the query and `attempt` the task attempts of one driver, so that a
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
        """The handle that `str` gave. Raises `InvalidInput` for any other text."""
        match = _HANDLE.fullmatch(text)
        if match is None:
            raise InvalidInput(f"{text!r} is not the name of a transaction of the lab.")
        query, *numbers = match.groups()
        return cls(query, *map(int, numbers))


class LostTransaction(JobFailed):
    """A transaction that was prepared is aborted all the same: the store did not keep its promise."""


@runtime_checkable
class Store(Protocol):
    """What every store can do: say what an outside reader could have seen."""

    def history(self) -> Iterator[Observation]:
        """Every row that was ever visible, in the order in which it became visible."""

    def hidden(self) -> Iterator[Observation]:
        """Rows of transactions that are neither committed nor aborted."""

    def close(self) -> None:
        """Closes files and connections. A closed store is not used again."""


class Shown(NamedTuple):
    """When rows became visible, in seconds since the epoch, by the clock of the store; None is not known."""

    at: Span | None = None
    ready: Span | None = None
    """When the rows were whole in the store, in a transaction that was pre-committed."""
    at_once: bool = False
    """Whether the rows were visible as soon as they were whole in the store."""

    @classmethod
    def noted(cls, at: float | None, ready: float | None) -> "Shown":
        """What a store has noted: when rows became visible, and, of rows in a transaction, when they were whole."""
        if at is None:
            return cls()
        if ready is None:
            return cls(Span.exactly(at), at_once=True)
        return cls(Span.exactly(at), Span.exactly(ready))


Tell = Callable[[Shown], None]
"""Is told when the rows that follow became visible."""


@runtime_checkable
class Clocked(Protocol):
    """The store knows when rows became visible, or were pre-committed. What it does not know it leaves out."""

    def clocked_history(self, tell: Tell) -> Iterator[Observation]:
        """The rows of `history`, each behind what was told of it; of rows that follow each other, once."""

    def waiting(self) -> Iterator[tuple[Observation, Span]]:
        """The hidden rows that were pre-committed, each with the moment of that; where nobody knows, all,
        when written.
        """


@runtime_checkable
class Appendable(Protocol):
    """Rows can be added, visible as soon as they are written."""

    def append(self, *rows: Observation) -> None:
        """Adds rows in order, at once where the store can. When this returns, they survive the death of the process."""


@runtime_checkable
class Keyed(Protocol):
    """A row replaces the earlier row of its key, visible as soon as it is written."""

    def upsert(self, *rows: Observation) -> None:
        """Sets the row of every key, at once where the store can; rows of one call have different keys.

        When this returns, the rows survive the death of the process.
        """


@runtime_checkable
class Atomic(Protocol):
    """Rows and a marker can be written in one transaction of one writer."""

    def has_marker(self, query: str, batch: int) -> bool:
        """Whether a transaction with this marker has committed."""

    def transaction(self, handle: Handle) -> AbstractContextManager[Callable[[Observation], None]]:
        """A transaction that writes rows through the yielded function and sets the marker (query, batch).

        Leaving the block commits everything at once; leaving it by an exception, or dying in it, leaves nothing.
        Raises `JobFailed` when the marker is there already.
        """


class Transaction(Protocol):
    """An open transaction of one writer: invisible until it is committed by its handle."""

    def write(self, row: Observation) -> None:
        """Writes one row into the transaction."""

    def prepare(self) -> None:
        """Pre-commits: when this returns, `commit` must succeed later, from any process."""


@runtime_checkable
class Transactional(Protocol):
    """Transactions that outlive their writer and are finished by handle."""

    def begin(self, handle: Handle) -> Transaction:
        """Opens a transaction under a name that was never used before."""

    def commit(self, handle: Handle) -> None:
        """Makes a prepared transaction visible. Idempotent: committing it again changes nothing.

        Raises `JobFailed` when the transaction is neither prepared nor committed, `LostTransaction` when it was
        prepared and the store has dropped it since.
        """

    def abort(self, handle: Handle) -> None:
        """Drops a transaction, open or prepared. Idempotent; never undoes a commit."""

    def prepared(self, query: str) -> list[Handle]:
        """Every transaction of `query` that is not finished, in the order of their names' numbers.

        An open transaction whose writer may be dead is listed too, since nobody else would ever remove it.
        """


@runtime_checkable
class Fencing(Protocol):
    """Transactions of a driver that was replaced are refused by the store itself, wherever its processes may live."""

    def fence(self, query: str, incarnation: int) -> None:
        """Refuses, from now on, what earlier incarnations of the query begin; what they began is left to recovery.

        Raises `JobFailed` when a later incarnation has done so already.
        """


def fenced(query: str, incarnation: int) -> JobFailed:
    """The error for a driver that was replaced and still wants to write."""
    return JobFailed(
        f"Driver {incarnation} of the query {query} was replaced by a later one and may not write any more."
    )


@runtime_checkable
class Expiring(Protocol):
    """Transactions that the store aborts by itself once they have been open for too long, prepared or not."""

    def expire_after(self, seconds: float) -> None:
        """Sets for how many seconds a transaction may be open from now on, counted from its first row."""

    def unfinished(self) -> list[str]:
        """What the server itself says is open now."""

    def expired(self) -> list[str]:
        """What the server itself says it has aborted, of all that nobody has finished."""


@runtime_checkable
class ServerBacked(Protocol):
    """The rows are in a server: deleting the location, which only names the store, does not delete them."""

    def check(self, capability: str) -> None:
        """Asks the server, before anything is run, whether it can carry this. Raises a sentence; writes nothing."""

    def destroy(self) -> None:
        """Drops every transaction and every row of the store. Idempotent."""
