"""What a changelog consists of: messages, a query with its counts, a consumer with its table.

What a crash keeps and drops is declared here and nowhere else. This module must not contain a rule.
"""

from typing import NamedTuple

from labkit.sim.model import Durable, Volatile, Word


class Kind(Word):
    """What a message says about one row of the table (Flink, Dynamic Tables: append-only, retract, upsert stream)."""

    ADD = "+"
    """The row is in the table (append-only and retract streams)."""
    RETRACT = "-"
    """The row is in the table no more; it names the whole row, since there need be no key (retract stream)."""
    UPSERT = "="
    """The row replaces the row of its key, if there is one (upsert stream)."""
    DELETE = "x"
    """The key has no row any more (upsert stream)."""


TAKES_BACK = (Kind.RETRACT, Kind.DELETE)


class Message(NamedTuple):
    """One change, caused by the input record at this offset."""

    kind: Kind
    key: str
    value: int
    """The count of the key in the row that is meant."""
    offset: int

    def __str__(self) -> str:
        return f"{self.kind}{self.key}:{self.value}@{self.offset}"


class Row(NamedTuple):
    """A row of the consumer's table, and how often it is there; less than 0: a retraction came that had no row."""

    key: str
    value: int
    """The count of the key."""
    times: int = 1


Counts = tuple[tuple[str, int], ...]
Table = tuple[Row, ...]


class Query(NamedTuple):
    """The continuous query: which record comes next, and the count of every key so far."""

    saved: Durable[int] = 0
    """The offset in its last checkpoint."""
    saved_counts: Durable[Counts] = ()
    is_up: Volatile[bool] = False
    offset: Volatile[int] = 0
    counts: Volatile[Counts] = ()


class Consumer(NamedTuple):
    """The process that keeps the table. `stored` is the position that it would start from."""

    table: Durable[Table] = ()
    stored: Durable[int] = 0
    is_up: Volatile[bool] = False
    position: Volatile[int] = 0
    has_deleted: Volatile[bool] = False
    """It has deleted the old row of a key, and not yet inserted the new one."""


class Budget(NamedTuple):
    """How often each thing may still go wrong."""

    crashes: int = 0
    query_crashes: int = 0
    losses: int = 0
    repeats: int = 0
    swaps: int = 0
    expiries: int = 0


class State(NamedTuple):
    """Two processes, then the environment: messages on their way, the log that keeps them, and what may go wrong.

    `furthest` is the offset that the query has come to in any of its lives.
    """

    query: Query
    consumer: Consumer
    network: tuple[Message, ...]
    topic: tuple[Message, ...]
    budget: Budget
    furthest: int = 0
