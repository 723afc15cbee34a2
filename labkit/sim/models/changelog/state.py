"""The parameters and states of the simulator `changelog`: messages, a query with counts, a consumer with its table.

With an append-only or retract stream the table is a multiset of rows; with an upsert stream it has one row per key.
"""

from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.sim.model import Durable, Volatile, Word
from labkit.sim.parameters import Choice, Parameter, Values, Whole, Words


class Kind(Word):
    """What a message does to a row of the consumer's table, as in Flink's append-only, retract and upsert streams."""

    ADD = "+"
    """The message adds the row to the table (append-only and retract streams)."""
    RETRACT = "-"
    """The message removes the row from the table. It names the whole row, because a retract stream needs no key."""
    UPSERT = "="
    """The row replaces the row of its key, if there is one (upsert stream)."""
    DELETE = "x"
    """The message removes the row of its key (upsert stream)."""


TAKES_BACK = (Kind.RETRACT, Kind.DELETE)


class Message(NamedTuple):
    """A message about one change of the query's result; `offset` is the offset of the input record that caused it."""

    kind: Kind
    key: str
    value: int
    """The count in the row that the message adds, removes or replaces."""
    offset: int

    def __str__(self) -> str:
        return f"{self.kind}{self.key}:{self.value}@{self.offset}"


class Row(NamedTuple):
    """A row of the consumer's table with the number of its copies, negative if a retraction came before the row."""

    key: str
    value: int
    """The count of the key."""
    times: int = 1


Counts = tuple[tuple[str, int], ...]
Table = tuple[Row, ...]


class Query(NamedTuple):
    """The state of the continuous query: the offset of the next record, and the count of each key.

    Each of the two exists in memory, and as a saved copy that the query reads after a crash.
    """

    saved: Durable[int] = 0
    """The offset of the next record in the last checkpoint."""
    saved_counts: Durable[Counts] = ()
    is_up: Volatile[bool] = False
    offset: Volatile[int] = 0
    counts: Volatile[Counts] = ()


class Consumer(NamedTuple):
    """The state of the process that keeps the table: its current and its stored position in the log of messages.

    After a restart, the process reads from the stored position.
    """

    table: Durable[Table] = ()
    stored: Durable[int] = 0
    is_up: Volatile[bool] = False
    position: Volatile[int] = 0
    has_deleted: Volatile[bool] = False
    """Whether the consumer has deleted the old row of a key but not yet inserted the new one."""


class Budget(NamedTuple):
    """How many more faults of each kind may happen in a run."""

    crashes: int = 0
    query_crashes: int = 0
    losses: int = 0
    repeats: int = 0
    swaps: int = 0
    expiries: int = 0


class State(NamedTuple):
    """The state of query, consumer, messages in flight and log of arrived messages, and the faults that may happen.

    `furthest` is the largest offset that the query has ever reached; a crash does not reduce it.
    """

    query: Query
    consumer: Consumer
    network: tuple[Message, ...]
    topic: tuple[Message, ...]
    budget: Budget
    furthest: int = 0


class Encoding(Word):
    """How changes of the query's result are encoded as messages, as in Flink's dynamic tables."""

    APPEND = "append"
    RETRACT = "retract"
    UPSERT = "upsert"


PARAMETERS: dict[str, Parameter] = {
    "encoding": Choice(
        "How changes are sent: append (rows are only added: the history of each count), retract (the old row is taken "
        "back, the new one added), or upsert (the new row replaces that of its key).",
        "retract",
        tuple(each.value for each in Encoding),
    ),
    "words": Words("The input, one word a record.", "hello-world-hello"),
    "at_most": Whole("Only keys with at most this count are in the result (HAVING); 0: all.", 0, 0, 3),
    "position": Choice(
        "When the consumer stores its position: in one step with its table, or in a step of its own before or after.",
        "with_table",
        ("with_table", "before", "after"),
    ),
    "writes": Choice(
        "How the consumer replaces a row: in one step (upsert), or in two (delete_insert).",
        "upsert",
        ("upsert", "delete_insert"),
    ),
    "unknown": Choice(
        "What a retraction of a missing row does: nothing (ignored), or it removes the row when that arrives (owed).",
        "ignored",
        ("ignored", "owed"),
    ),
    "hits": Choice(
        "Which messages can be lost, repeated or overtaken: any, or retractions and deletes only.",
        "any",
        ("any", "retractions"),
    ),
    "crashes": Whole("How many crashes of the consumer there may be.", 1, 0, 2),
    "query_crashes": Whole("How many crashes of the query there may be; it then replays from its checkpoint.", 0, 0, 2),
    "losses": Whole("How many messages may be lost.", 0, 0, 2),
    "repeats": Whole("How many messages may come twice.", 0, 0, 2),
    "swaps": Whole("How many messages may overtake the one before them.", 0, 0, 2),
    "expiries": Whole("How often the query may forget the count of a key (state expiry).", 0, 0, 1),
    "broken": Choice(
        "Which rule is broken: add_only (a change is sent without its retraction), retract_new (the new row is taken "
        "back in place of the old one), no_delete (an upsert stream says nothing when a key leaves the result), "
        "stored_at_delete (a consumer that deletes and inserts stores its position with the delete).",
        "nothing",
        ("nothing", "add_only", "retract_new", "no_delete", "stored_at_delete"),
    ),
}


class Settings(NamedTuple):
    """The parameters of the simulator `changelog` as Python types, such as an `Encoding` instead of its name."""

    encoding: Encoding
    words: tuple[str, ...]
    at_most: int
    position: str
    deletes_first: bool
    owes: bool
    hits_any: bool
    budget: Budget
    broken: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the different words of the input in the order of their first occurrence."""
        return tuple(dict.fromkeys(self.words))

    def shows(self, count: int) -> bool:
        """Return whether the query's result contains a key with this count.

        If `at_most` is not 0, the query returns only keys with counts up to `at_most`.
        """
        return count > 0 and not (self.at_most and count > self.at_most)


def settings(values: Values) -> Settings:
    """Convert parameter values to `Settings`. Raises `InvalidInput` if two of the values exclude each other."""
    encoding = Encoding(str(values["encoding"]))
    if encoding is Encoding.APPEND and values["at_most"]:
        raise InvalidInput(
            f"at_most={values['at_most']}: an append-only stream cannot remove a key whose count becomes too high; set "
            "encoding=retract or encoding=upsert."
        )
    return Settings(
        encoding=encoding,
        words=tuple(str(values["words"]).split("-")),
        at_most=int(values["at_most"]),
        position=str(values["position"]),
        deletes_first=values["writes"] == "delete_insert",
        owes=values["unknown"] == "owed",
        hits_any=values["hits"] == "any",
        budget=Budget(*(int(values[name]) for name in Budget._fields)),
        broken=str(values["broken"]),
    )


def applied(table: Table, message: Message, *, owes: bool) -> Table:
    """Return the table after the consumer has applied a message.

    A retraction may come before its row is in the table. With `owes`, the table remembers the retraction and drops the
    row when the row arrives. Without `owes`, the retraction is ignored.
    """
    kind, key, value, _ = message
    if kind is Kind.UPSERT:
        return tuple(sorted((*without(table, key), Row(key, value))))
    if kind is Kind.DELETE:
        return without(table, key)
    times = next((row.times for row in table if row.key == key and row.value == value), 0)
    if kind is Kind.RETRACT and times < 1 and not owes:
        return table
    times += 1 if kind is Kind.ADD else -1
    rest = [row for row in table if (row.key, row.value) != (key, value)]
    return tuple(sorted([*rest, Row(key, value, times)] if times else rest))


def without(table: Table, key: str) -> Table:
    """Return the table without the rows of a key."""
    return tuple(row for row in table if row.key != key)


def has(table: Table, key: str) -> bool:
    """Return whether a reader of the table sees a row of the key: the table must have at least one copy of the row."""
    return any(row.key == key and row.times > 0 for row in table)


def visible(table: Table) -> Table:
    """Return the rows that a reader of the table sees: those with at least one copy (`times`)."""
    return tuple(row for row in table if row.times > 0)
