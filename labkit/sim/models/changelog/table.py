"""What a consumer makes of messages: a bag of rows from adds and retractions, one row a key from upserts and deletes.

This module must not know positions, crashes or what the table should be.
"""

from labkit.sim.models.changelog.parts import Kind, Message, Row, Table


def applied(table: Table, message: Message, *, owes: bool) -> Table:
    """The table after a message. `owes`: a retraction without a row is kept, and takes back the row that comes."""
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
    """The table without the rows of a key."""
    return tuple(row for row in table if row.key != key)


def has(table: Table, key: str) -> bool:
    """Whether a reader of the table finds the key."""
    return any(row.key == key and row.times > 0 for row in table)


def visible(table: Table) -> Table:
    """The rows that a reader of the table finds."""
    return tuple(row for row in table if row.times > 0)
