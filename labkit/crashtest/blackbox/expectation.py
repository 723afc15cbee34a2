"""Matches the rows that a reader returns with the rows that a pipeline should produce; rows may have any columns.

A row that is expected twice must be there twice. All columns together identify a row. But if a reader returns only the
last row of each key, the key identifies it, and if a reader returns one number for each name, the name does.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.records import PlannedBatch
from labkit.crashtest.rows import Rows, Seen, Shape, row_counts

SHOWN = 60
"""The number of characters of a row that a message quotes."""


class WholeRows(Rows):
    """The expected rows of a pipeline. labkit does not know how the pipeline divides its input into batches."""

    def planned_batches(self) -> list[PlannedBatch]:
        """Return []; therefore the judge never reports a batch as partly visible."""
        return []


class Total(NamedTuple):
    """A row that consists of a name and a number, such as a count or a sum."""

    name: str
    number: int


def text(value: Any) -> str:
    """Return the row `value` as JSON text. Rows that differ only in the order of their columns have the same text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def shown(text: str) -> str:
    """Return the text of a row for a message: cut after `SHOWN` characters, with `...` in place of the rest."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def total(value: Any) -> Total | None:
    """Return the row `value` as a `Total` if its columns are a text and a positive whole number; otherwise None.

    A row with a number in a column `id` is no total, because this number is the row's name.
    """
    if isinstance(value, dict) and not isinstance(value.get("id", ""), str):
        return None
    columns = value.values() if isinstance(value, dict) else value
    parts = list(columns) if isinstance(value, dict | list) else []
    names = [part for part in parts if isinstance(part, str)]
    numbers = [part for part in parts if isinstance(part, int) and not isinstance(part, bool)]
    if len(parts) != 2 or len(names) != 1 or len(numbers) != 1 or numbers[0] <= 0:
        return None
    return Total(names[0], numbers[0])


def key(value: Any) -> str | None:
    """Return the column `key` of the row `value`, as text; None if the row has no such column."""
    named = value.get("key") if isinstance(value, dict) else None
    return None if named is None else str(named)


@dataclass(frozen=True)
class Expectation:
    """The rows that a pipeline should produce, in the user's order, and the form of the rows that are read."""

    values: tuple[Any, ...]
    shape: Shape
    rows: Rows
    """The same rows as the input of a query; `WholeRows` if nobody knows the batches."""

    @property
    def by_offset(self) -> Mapping[int, Any]:
        """A dict from the index of each expected row to this row; `seen` uses these indices as the ids of rows."""
        return dict(enumerate(self.values))

    @property
    def history_shape(self) -> Shape:
        """The form in which `labkit.core.judge` receives the rows that the reader returned.

        The judge cannot compare totals, so it receives each total as a row, which `seen` makes: the row is missing if
        the total is too small, and appears twice if the total is too large. Other rows stay as they are.
        """
        return Shape.ROWS if self.shape is Shape.SUMS else self.shape

    def seen(self, values: Iterable[Any]) -> tuple[Seen, ...]:
        """Return the reader's rows, each with the index of the expected row that equals it, or with -1 if none does."""
        if self.shape is Shape.SUMS:
            return tuple(self._totals(values))
        return tuple(self._rows(values))

    def misses(self, values: Sequence[Any]) -> int:
        """Return how many expected rows are missing in `values`, the rows that the reader returned."""
        present = {row.offset for row in row_counts(self.seen(values), self.history_shape, self.rows.expected())}
        return len([offset for offset in self.due() if offset not in present])

    def due(self) -> list[int]:
        """Return the ids of the rows that must be there at the end: all rows, or the last row of each key."""
        records = self.rows.expected()
        if self.shape is not Shape.LAST:
            return [record.offset for record in records]
        return sorted({record.key: record.offset for record in records}.values())

    def _rows(self, values: Iterable[Any]) -> Iterable[Seen]:
        """Match each row that the reader returned with the next expected row that equals it.

        Surplus rows are matched with the last of the equal expected rows, so that they count as duplicates.
        """
        places: dict[str, list[int]] = defaultdict(list)
        for place, row in enumerate(self.values):
            places[text(row)].append(place)
        times: Counter[str] = Counter()
        last = self.shape is Shape.LAST
        for row in values:
            whole = text(row)
            indices = places.get(whole, [-1])
            place = indices[-1] if last else indices[min(times[whole], len(indices) - 1)]
            times[whole] += 1
            yield Seen(place, (key(row) if last else None) or whole, 0)

    def _totals(self, values: Iterable[Any]) -> Iterable[Seen]:
        """Match totals with the expected totals of the same name, as `history_shape` describes."""
        due = {total(row): place for place, row in enumerate(self.values)}
        names = {each.name: each for each in due if each is not None}
        read: dict[str, list[Any]] = defaultdict(list)
        for row in values:
            each = total(row)
            read[each.name if each else text(row)].append(row)
        for name, rows in read.items():
            wanted = names.get(name)
            if wanted is None:
                yield from (Seen(-1, text(row), 0) for row in rows)
                continue
            place = due[wanted]
            if len(rows) == 1:
                number = (total(rows[0]) or wanted).number
                times = 0 if number < wanted.number else 1 + (number > wanted.number)
                yield from [Seen(place, text(self.values[place]), 0)] * times
                continue
            for row in rows:
                is_due = total(row) == wanted
                yield Seen(place if is_due else -1, text(row), 0)


def expect(values: Sequence[Any], read: Sequence[Any]) -> Expectation:
    """Return what is expected of a pipeline: the rows `values`, and the form in which the reader returns rows.

    labkit recognises the form from `read`, the rows that the reader returned after a run without a crash. Raises
    `InvalidInput` if no row in `read` is expected.
    """
    shape = _shape(values, read)
    rows = [
        {"id": place, "key": (key(row) if shape is Shape.LAST else None) or text(row), "amount": 0}
        for place, row in enumerate(values)
    ]
    expectation = Expectation(tuple(values), shape, WholeRows([rows], generated=False))
    if not any(row.id is not None and row.id >= 0 for row in expectation.seen(read)):
        _refuse_strangers(values, read, shape)
    return expectation


def _refuse_strangers(values: Sequence[Any], read: Sequence[Any], shape: Shape) -> None:
    """Raise `InvalidInput`, because no row that the reader returned (`read`) is an expected row (`values`).

    Totals (rows of a name and a number, such as a count; `shape` says whether the rows are totals) are an exception: if
    the reader returned an expected name, do nothing. The numbers are then only too small, as after a loss of rows.
    """
    if shape is Shape.SUMS and _names(values) & _names(read):
        return  # every total is too small
    read_row, due_row = (shown(text(rows[0])) for rows in (read, values))
    raise InvalidInput(
        f"--expected: none of the {len(read)} row(s) that the reader returned is among the expected rows; it "
        f"returned {read_row}, but {due_row} was expected. Give both the same columns."
    )


def _names(values: Sequence[Any]) -> set[str]:
    return {each.name for row in values if (each := total(row)) is not None}


def _shape(values: Sequence[Any], read: Sequence[Any]) -> Shape:
    keys = [key(row) for row in values]
    last = {name: text(row) for name, row in zip(keys, values, strict=True)}
    replaced = None not in keys and len(last) < len(keys)
    seen = [key(row) for row in read]
    once = None not in seen and len(set(seen)) == len(seen)
    latest = all(last.get(key(row)) == text(row) for row in read)
    if replaced and once and latest:
        return Shape.LAST
    if len(_names(values)) == len(values):
        return Shape.SUMS
    return Shape.ROWS


def lines(text_of_them: str, where: str) -> list[Any]:
    """Return the values of a JSON Lines text. Raises `InvalidInput` for a bad line.

    The message of the error begins with `where`, the name of the text's source.
    """
    values = []
    for number, line in enumerate(text_of_them.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            values.append(_whole(json.loads(line)))
        except ValueError as error:
            raise InvalidInput(
                f"{where}, line {number}: this is not valid JSON ({error}); write one value per line."
            ) from None
    return values


def _whole(value: Any) -> Any:
    # Users take 1.0 and 1 for the same number.
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def some(values: Sequence[Any], most: int = 2) -> str:
    """Return the first `most` rows as text for a message; `...` follows if there are more."""
    quoted = ", ".join(shown(text(row)) for row in islice(values, most))
    return f"{quoted}, ..." if len(values) > most else quoted
