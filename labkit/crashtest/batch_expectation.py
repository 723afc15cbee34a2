"""Computes the rows that a sink's store must contain: the input of its query, whose ids and batches are known."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.crashtest.blackbox.expectation import Expectation, some, text
from labkit.crashtest.rows import Rows, Seen, Shape, shape_of

_LIMIT = 2**63


class BatchExpectation(Expectation):
    """The rows that a sink's store must contain after a run, and the form in which the user's reader returns them."""

    @cached_property
    def by_offset(self) -> Mapping[int, Any]:
        return {row["id"]: row for row in self.values}

    @property
    def history_shape(self) -> Shape:
        return self.shape

    def seen(self, values: Iterable[Any]) -> tuple[Seen, ...]:
        return tuple(map(_seen, values))


def expect_batches(rows: Rows, read: Sequence[Any]) -> BatchExpectation:
    """Return what a sink's store must contain: the input of its query, in the form that the user's reader returns.

    labkit recognises the form from `read`, the rows that the reader returned after a run without a crash. Raises
    `InvalidInput` if the rows in `read` have no ids, unless they are pairs (key, sum of the key's amounts) and labkit
    generated the input.
    """
    seen = list(map(_seen, read))
    if seen and all(row.id is None and row.key is not None and row.amount is None for row in seen):
        raise InvalidInput(
            f"the reader returned {some(read, 1)}, which labkit cannot match with the input. Return mappings with a "
            "field id, tuples (id, key, amount), or sums as tuples (key, sum of amounts)."
        )
    return BatchExpectation(rows.all, shape_of(seen, rows), rows)


def _seen(value: Any) -> Seen:
    # The user's reader may return a value that is no row, for example half a line; it becomes a row without an id.
    try:
        return plain(value)
    except (TypeError, ValueError):
        return Seen(None, text(value), None)


def plain(row: Any) -> Seen:
    """Return one row of the user's reader as id, key and amount; a field that the row does not have is None.

    Raises `TypeError` or `ValueError` for a value that is no row.
    """
    if isinstance(row, Mapping):
        return Seen(_whole(row.get("id")), _text(row.get("key")), _whole(row.get("amount")))
    if isinstance(row, int):
        return Seen(_whole(row), None, None)
    if isinstance(row, list) and len(row) in (1, 2, 3):
        if isinstance(row[0], str):
            return Seen(None, row[0], _whole(row[1]) if len(row) == 2 else None)
        number, key, amount = [*row, None, None][:3]
        return Seen(_whole(number), _text(key), _whole(amount))
    raise TypeError(f"a row must be a mapping, a list or an id, not of type {type(row).__name__}")


def _whole(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or int(value) != value:
        raise TypeError(f"the id or amount {value!r:.40} is not a whole number")
    if not -_LIMIT <= value < _LIMIT:
        raise TypeError(f"the id or amount {value!r:.40} does not fit into 64 bits")
    return int(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
