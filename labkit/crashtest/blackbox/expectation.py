"""The rows that are due, and the identity of each row that a reader returns: a user's rows have any columns.

A row is due as often as it was expected. All columns together identify a row; where a reader returns the last row of
each key, or one number for each name, the key or the name does.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.records import PlannedBatch
from labkit.crashtest.rows import Rows, Seen, Shape

SHOWN = 60
"""Characters of a row that a sentence quotes."""


class WholeRows(Rows):
    """Rows whose division into batches is unknown."""

    def planned_batches(self) -> list[PlannedBatch]:
        """No batch, so no part of a batch can be told from all of it."""
        return []


class Total(NamedTuple):
    """A name and a number: a count or a sum of that name."""

    name: str
    number: int


def text(value: Any) -> str:
    """A row as text, which is the same for the same columns in any order."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def total(value: Any) -> Total | None:
    """The row as a total, if it has one text and one whole number above 0, and nothing else."""
    columns = value.values() if isinstance(value, dict) else value
    parts = list(columns) if isinstance(value, dict | list) else []
    names = [part for part in parts if isinstance(part, str)]
    numbers = [part for part in parts if isinstance(part, int) and not isinstance(part, bool)]
    if len(parts) != 2 or len(names) != 1 or len(numbers) != 1 or numbers[0] <= 0:
        return None
    return Total(names[0], numbers[0])


def key(value: Any) -> str | None:
    """The row's column `key`, if it has one."""
    named = value.get("key") if isinstance(value, dict) else None
    return None if named is None else str(named)


@dataclass(frozen=True)
class Expectation:
    """The rows that should come out, in the order in which the user gave them."""

    values: tuple[Any, ...]
    shape: Shape
    rows: WholeRows

    @property
    def history_shape(self) -> Shape:
        """The shape of a run's history: there a total is a row that may come twice."""
        return Shape.ROWS if self.shape is Shape.SUMS else self.shape

    def seen(self, values: Iterable[Any]) -> tuple[Seen, ...]:
        """The rows that were read, each with the index of its expected row; -1 for a row that nobody expects."""
        if self.shape is Shape.SUMS:
            return tuple(self._totals(values))
        return tuple(self._rows(values))

    def misses(self, values: Sequence[Any]) -> int:
        """How many rows that are due were not read."""
        ids = {row.id for row in self.seen(values)}
        return len([place for place in self.due() if place not in ids])

    def due(self) -> list[int]:
        """The indices of the rows that should be there in the end: of several with one key the last."""
        if self.shape is not Shape.LAST:
            return list(range(len(self.values)))
        return sorted({key(row): place for place, row in enumerate(self.values)}.values())

    def _rows(self, values: Iterable[Any]) -> Iterable[Seen]:
        """Matches rows. Equal rows that are due are taken in order; any row beyond them is the last one again."""
        places = _places(self.values)
        times: Counter[str] = Counter()
        for row in values:
            whole = text(row)
            identity = key(row) if self.shape is Shape.LAST else whole
            indices = places.get(whole)
            if indices is None:
                yield Seen(-1, identity or whole, 0)
                continue
            last = self.shape is Shape.LAST
            place = indices[-1] if last else indices[min(times[whole], len(indices) - 1)]
            times[whole] += 1
            yield Seen(place, identity or whole, 0)

    def _totals(self, values: Iterable[Any]) -> Iterable[Seen]:
        """Matches totals. Too small a number misses its row; too large a number has it twice."""
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


def _places(values: Sequence[Any]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(values):
        places[text(row)].append(place)
    return places


def expect(values: Sequence[Any], read: Sequence[Any]) -> Expectation:
    """The expectation, in the shape of the rows of a run without a crash. Raises `InvalidInput` if none is due."""
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
    """Raises `InvalidInput` where no row that was read is of the kind that was expected."""
    if shape is Shape.SUMS and _names(values) & _names(read):
        return  # every total is too small
    one, other = (text(rows[0])[:SHOWN] for rows in (read, values))
    raise InvalidInput(
        f"--expected: none of the {len(read)} row(s) that the reader returned is expected; it returned {one}, and "
        f"expected is {other}: both must have the same columns."
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
    """The values of JSON Lines. Raises `InvalidInput` that names the line without a JSON value."""
    values = []
    for number, line in enumerate(text_of_them.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            values.append(_whole(json.loads(line)))
        except ValueError as error:
            raise InvalidInput(f"{where}, line {number}: write one JSON value a line ({error}).") from None
    return values


def _whole(value: Any) -> Any:
    """A value with its whole numbers as integers: 1.0 and 1 are one number."""
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def some(values: Sequence[Any], most: int = 2) -> str:
    """A few rows, quoted for a sentence."""
    quoted = ", ".join(text(row)[:SHOWN] for row in islice(values, most))
    return f"{quoted}, ..." if len(values) > most else quoted
