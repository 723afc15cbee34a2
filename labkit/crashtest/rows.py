"""Generates the input rows of a job under test, and identifies them again among the rows that a reader returns.

Every generated row has an id and an amount. The amounts of a key are different powers of 64, so that each row has its
own digit in their sum. So even a sink that only stores sums hides neither a duplicate nor a loss.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.records import PlannedBatch, Record

FILES = 2
"""The number of files in a batch, and so of Spark's partitions: two show whether a sink commits them separately."""

PER_BATCH = 10
"""The number of rows in a generated batch. Each key occurs once in a batch."""

LARGE = 3000
"""The number of rows in the large batch of a test, more than the thousand that sinks commonly write at once."""

FEWEST = 2 * FILES
"""The minimum number of rows in a batch: two for each partition, so that losing some differs from losing all."""

BASE = 64
"""The base of the digits in a sum of amounts: one digit counts up to 63 copies of a row."""

SCHEMA = "id long, key string, amount long"


class Shape(StrEnum):
    """The form in which the user's reader returns the rows: every row, the last row of each key, or sums."""

    ROWS = "each row"
    LAST = "the last row of each key"
    SUMS = "one number for each name, such as the sum of its amounts"


class Seen(NamedTuple):
    """One row as the user's reader returned it; a field is None if the row has no such column."""

    id: int | None
    key: str | None
    amount: int | None


class Batch(NamedTuple):
    """The input rows of one micro-batch, which Spark has to process together."""

    number: int
    rows: tuple[dict[str, Any], ...]


class Rows:
    """The input rows of one Spark query, divided into batches."""

    def __init__(self, batches: Sequence[Sequence[dict[str, Any]]], *, generated: bool = True) -> None:
        self.batches = [Batch(number, tuple(rows)) for number, rows in enumerate(batches)]
        self.generated = generated

    @property
    def all(self) -> tuple[dict[str, Any], ...]:
        """The rows of all batches in one tuple, from the first batch to the last."""
        return tuple(row for batch in self.batches for row in batch.rows)

    def expected(self) -> list[Record]:
        """Return the input rows as a list of records, in order; at the end, the store should contain all of them."""
        return [
            Record(row["id"], str(row.get("key", row["id"])), row.get("amount", 0) if self.generated else 0)
            for row in self.all
        ]

    def divided(self, batches: Sequence[Sequence[dict[str, Any]]]) -> "Rows":
        """Return `Rows` with these `batches`; they count as generated, and not as the user's own, if these rows do."""
        return Rows(batches, generated=self.generated)

    def planned_batches(self) -> list[PlannedBatch]:
        """Return the range of row ids of each batch, in a list; [] if the ids do not increase from batch to batch."""
        spans = [(min(row["id"] for row in batch.rows), max(row["id"] for row in batch.rows)) for batch in self.batches]
        if any(later[0] <= earlier[1] for earlier, later in pairwise(spans)):
            return []
        return [PlannedBatch(number, first, last + 1) for number, (first, last) in enumerate(spans)]

    def moved(self) -> "Rows":
        """Return copies of these rows as input of a second query; all new ids are higher than the ids of these rows."""
        beyond = 1 + max(row["id"] for row in self.all)
        return self.divided([[row | {"id": row["id"] + beyond} for row in batch.rows] for batch in self.batches])

    def write(self, folder: Path) -> None:
        """Write each batch as one JSON Lines file for each partition; the files' times tell Spark their order."""
        folder.mkdir(parents=True, exist_ok=True)
        for batch in self.batches:
            for part in range(FILES):
                number = batch.number * FILES + part
                path = folder / f"rows-{number:05}.json"
                path.write_text("".join(json.dumps(row) + "\n" for row in batch.rows[part::FILES]), encoding="utf-8")
                os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def generate_large() -> Rows:
    """Return two batches of generated rows: first one with 3000 rows, then one of the usual size."""
    large, small = generate(1, per_batch=LARGE), generate(2, LARGE)
    return Rows([large.batches[0].rows, small.batches[1].rows])


def generate(batches: int, base: int = 0, first: int = 0, per_batch: int = PER_BATCH) -> Rows:
    """Return `batches` batches of `per_batch` generated rows; the lowest id is `base + first * per_batch`.

    `first` is the number of batches that an earlier query wrote. If it is not 0, the rows get keys that the earlier
    query did not use.
    """
    letter = "m" if first else "k"

    def row(batch: int, place: int) -> dict[str, Any]:
        return {"id": base + batch * per_batch + place, "key": f"{letter}{place}", "amount": BASE**batch}

    return Rows([[row(batch, place) for place in range(per_batch)] for batch in range(first, first + batches)])


def read_rows(path: Path, batches: int) -> Rows:
    """Read the user's rows from a JSON Lines file, and divide them into `batches` batches.

    Raises `InvalidInput` if a line is not a row with an id, if two rows have the same id, or if there are too few.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidInput(f"--rows {path}: this file cannot be read ({error.strerror}); name another one.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"--rows {path}: this file is not UTF-8 text ({error.reason}); save it as UTF-8.") from None
    rows = [_row(line, f"--rows {path}, line {number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if len({row["id"] for row in rows}) < len(rows):
        raise InvalidInput(
            f"--rows {path}: two rows have the same id, which hides duplicates; give every row its own id."
        )
    size = len(rows) // batches
    if size < FEWEST:
        raise InvalidInput(
            f"--rows {path}: {batches} batches need at least {FEWEST * batches} rows, but this file has {len(rows)}; "
            "add rows, or choose fewer batches with --batches."
        )
    rows.sort(key=lambda row: row["id"])
    ends = [size * number for number in range(batches)] + [len(rows)]
    return Rows([rows[start:end] for start, end in pairwise(ends)], generated=False)


def _row(line: str, where: str) -> dict[str, Any]:
    """Return the row in one line of a JSON Lines file.

    Raises `InvalidInput`, with a message that begins with `where`, if the line is no such row.
    """
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InvalidInput(f"{where}: this is not valid JSON ({error}); write one JSON object per line.") from None
    if not isinstance(row, dict) or type(row.get("id")) is not int or not -(2**63) <= row["id"] < 2**63:
        raise InvalidInput(f"{where}: every row needs a column id with a whole number of at most 63 bits.")
    return row


def shape_of(seen: Sequence[Seen], rows: Rows) -> Shape:
    """Return the form of `seen`, the rows after a run without a crash. Raises `InvalidInput` if it is unsuitable."""
    if all(row.id is None for row in seen):
        if not rows.generated or any(row.key is None or row.amount is None for row in seen):
            raise InvalidInput(
                "the reader's rows have no id; return rows (id, ...), or leave out --rows and return rows (key, sum of "
                "amounts)."
            )
        if len(rows.batches) > 1 and _sums(seen) == Counter(record.key for record in rows.expected()):
            raise InvalidInput(
                "the reader returns the number of rows of each key, which does not show if they are the right rows; "
                "return (key, sum of amounts) instead: no two sets of the rows that labkit makes have the same sum."
            )
        return Shape.SUMS
    keys = Counter(row.key for row in seen)
    expected = rows.expected()
    last = {record.key: record.offset for record in expected}
    replaced = len(last) < len(expected)  # otherwise every row is the last one of its key
    once = None not in keys and max(keys.values()) == 1 and replaced
    return Shape.LAST if once and all(last.get(row.key or "") == row.id for row in seen) else Shape.ROWS


def named(record: Record, shape: Shape) -> Record:
    """Return the record with a key that tells `labkit.core.judge` which records replace one another.

    If the store keeps only the last row of each key (`Shape.LAST`), this is the record's own key. Otherwise it is a key
    that no other record has, so that the judge never takes one row for a replacement of another.
    """
    return record if shape is Shape.LAST else record._replace(key=f"{record.key}/{record.offset}")


def row_counts(seen: Iterable[Seen], shape: Shape, expected: Sequence[Record]) -> Counter[Record]:
    """Return a Counter of how often each row occurs in `seen`, one reading of the store.

    Each key of the Counter is a record whose offset is the row's id, or -1 for a row without an id. `shape` is the form
    of the rows. If the reader returned sums (`Shape.SUMS`), the Counter says how often each input row in `expected` was
    added to a sum. A remainder that no input row explains is counted as a record with the offset -1.
    """
    if shape is Shape.SUMS:
        return _digits(seen, expected)
    by_id = {record.offset: record for record in expected}
    shown: Counter[Record] = Counter()
    for row in seen:
        offset = -1 if row.id is None else row.id
        due = by_id.get(offset) or Record(offset, str(row.key), 0)
        amount = due.value if row.amount is None or due.value == 0 else row.amount
        shown[Record(due.offset, due.key if row.key is None else row.key, amount)] += 1
    return shown


def _digits(seen: Iterable[Seen], expected: Sequence[Record]) -> Counter[Record]:
    """Return a Counter of how often each input row was added to the sums that the user's reader returned.

    The generated amounts of one key are different powers of `BASE`. So if a key's sum is written in base `BASE`, each
    of the sum's digits says how often one row was added.
    """
    sums, shown = _sums(seen), Counter[Record]()
    for record in expected:
        times = sums[record.key] // record.value % BASE if sums[record.key] > 0 else 0
        if times:
            shown[record] = times
            sums[record.key] -= times * record.value
    for key, rest in sums.items():
        if rest:
            shown[Record(-1, key, rest)] += 1
    return shown


def _sums(seen: Iterable[Seen]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for row in seen:
        sums[str(row.key)] += row.amount or 0
    return sums
