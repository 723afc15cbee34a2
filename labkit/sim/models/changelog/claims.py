"""The properties (claims) to check in `changelog`: after every prefix of the input, the consumer's table equals the
result of a batch query on that prefix.

The claims compare table and result only when the consumer has read every message. Between the two messages of one
change the table may lack a row; that is no violation.
"""

from collections.abc import Sequence
from functools import partial

from labkit.sim.model import Mood, Property, possible, unless
from labkit.sim.models.changelog.query import batch
from labkit.sim.models.changelog.state import Budget, Encoding, Kind, Row, Settings, State, Table, has, visible
from labkit.sim.wording import listed, to_come


def is_settled(state: State) -> bool:
    """Return whether the consumer's table is up to date, and no process is down.

    The query has then caught up with its largest offset, and the consumer has read and stored all messages.
    """
    ((_, _, query_is_up, offset, _), (_, stored, is_up, position, _), network, topic, _, furthest) = state
    return query_is_up and is_up and not network and offset == furthest and stored == position == len(topic)


def rows(table: Table) -> str:
    """Return the rows of a table as text, or "nothing" if there are none."""
    return listed(map(_row, table), ", ", "nothing")


def _row(row: Row) -> str:
    many = f" ({row.times} times)" if row.times != 1 else ""
    return f"{row.key} = {row.value}{many}"


def claims(settings: Settings) -> Sequence[Property[State]]:
    """Return the properties to check: mainly that the consumer's table has the right rows once all messages are read.

    The right rows are the result of a batch query on the records that the streaming query has read so far (a prefix of
    the input). `settings` decides which other properties are checked, for example that no key has two rows.
    """
    always, difference = Mood.ALWAYS, partial(_difference, settings)
    same = "Whenever all messages are read, the table equals the batch query's result for the same records."
    in_the_end = "In the end the table equals the batch query's result, even if it differed before."
    properties = [
        unless("equals_batch", always, same, difference, is_settled),
        unless("ends_equal", Mood.EVENTUALLY, in_the_end, difference),
    ]
    if settings.encoding is not Encoding.APPEND:
        sentence = "Whenever all messages are read, no key has more than one row."
        properties.append(unless("one_row", always, sentence, _doubled, is_settled))
        if not settings.at_most:
            sentence = "Whenever all messages are read, the counts add up to the number of records."
            properties.append(unless("total", always, sentence, _wrong_total, is_settled))
    last = len(settings.words)
    properties.append(possible("all_read", "All messages are read.", lambda state: state.furthest == last, is_settled))
    if _can_have_gap(settings):
        properties.append(possible("gap", "For a moment, a key of the result is missing from the table.", _has_gap))
    return properties


def _difference(settings: Settings, state: State) -> str:
    table, right = visible(state.consumer.table), batch(settings, state.furthest)
    if table == right:
        return ""
    wrong = next((row for row in table if row not in right), None) or next(row for row in right if row not in table)
    where = "in the table" if wrong in table else "missing"
    row = rows((wrong,))
    return f"after {state.furthest} records {row} is {where}: it has {rows(table)}, the batch query {rows(right)}."


def _doubled(state: State) -> str:
    table = visible(state.consumer.table)
    keys = [row.key for row in table]
    twice = [row for row in table if keys.count(row.key) > 1 or row.times > 1]
    if not twice:
        return ""
    shown = rows(tuple(row for row in twice if row.key == twice[0].key))
    return f"{twice[0].key} has more than one row: {shown}."


def _wrong_total(state: State) -> str:
    total = sum(row.value * row.times for row in state.consumer.table)
    if total == state.furthest:
        return ""
    return f"the counts add up to {total} after {state.furthest} records: {rows(state.consumer.table)}."


def _can_have_gap(settings: Settings) -> bool:
    repeated = len(settings.words) > len(settings.keys) and settings.at_most != 1
    deletes = settings.encoding is Encoding.UPSERT and settings.deletes_first
    return repeated and (settings.encoding is Encoding.RETRACT or deletes)


def _has_gap(state: State) -> bool:
    """Return whether the consumer has removed the old row of a key but not yet inserted the new one."""
    table, _, _, position, has_deleted = state.consumer
    if has_deleted:
        return True
    if not 0 < position < len(state.topic):
        return False
    (kind, key, _, offset), (next_kind, next_key, _, next_offset) = state.topic[position - 1 : position + 1]
    is_half = kind is Kind.RETRACT and (next_kind, next_key, next_offset) == (Kind.ADD, key, offset)
    return is_half and not has(table, key)


def text(state: State) -> str:
    """Return a state as one line of text: query, messages, consumer, and the faults that may still happen."""
    query, consumer, network, topic, budget, furthest = state
    counts = listed(f"{key}={count}" for key, count in query.counts)
    now = f"at {query.offset} of {furthest}, counts {counts}" if query.is_up else f"down, had come to {furthest}"
    saved = listed(f"{key}={count}" for key, count in query.saved_counts)
    at = f"at {consumer.position}" + " between delete and insert" * consumer.has_deleted if consumer.is_up else "down"
    left = to_come(Budget._fields, budget)
    return "; ".join(
        (
            f"query {now}, saved {query.saved}: {saved}",
            f"on the way {listed(map(str, network))}",
            f"log {listed(map(str, topic))}",
            f"consumer {at}, stored {consumer.stored}, table {rows(consumer.table)}",
            f"to come {listed(left)}.",
        )
    )
