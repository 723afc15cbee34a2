"""Compute in plain Python the rows that each job should emit for an input, independently of Spark."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.core.records import Observation, PlannedBatch, Record
from labkit.host.logs import read_log, read_text
from labkit.spark.outside import first_prices

WORD = re.compile(r"(?:[^\W_]|')+")
"""The pattern of a word: a maximal run of letters, numbers and apostrophes, `[\\p{L}\\p{N}']+` in Spark."""


def words(line: str) -> list[str]:
    """Return the words of a line in lower case."""
    return [word.lower() for word in WORD.findall(line)]


class Count(ABC):
    """Base class: compute the rows that a job should emit for one input, with the offsets that the judge expects."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def check(self) -> int:
        """Read the whole input and return its number of records. Raises `InvalidInput` for a bad record."""

    @abstractmethod
    def expected(self) -> Iterator[Record]:
        """Yield every expected row, in order."""

    def outcomes(self) -> Mapping[int, Container[int]]:
        """Return by offset all values that a run without failures may show, for values that the job looks up outside.

        It is empty for a job without look-ups (`core.explanation`).
        """
        return {}

    def numbered(self, rows: Iterable[Observation]) -> Iterator[Observation]:
        """Yield the rows that a store shows, with their offsets replaced by those that `expected` uses."""
        yield from rows

    def planned_batches(self, planned: Sequence[PlannedBatch]) -> Sequence[PlannedBatch]:
        """Return Spark's planned batches as ranges of the offsets that `expected` uses."""
        return planned


class RunningCounts(Count):
    """The expected rows of the running word count: for every record its offset, word, and the word's count so far."""

    def check(self) -> int:
        return sum(1 for _ in read_log(self.path))

    def expected(self) -> Iterator[Record]:
        counts: Counter[str] = Counter()
        for offset, word in enumerate(read_log(self.path)):
            counts[word] += 1
            yield Record(offset, word, counts[word])


class Ones(RunningCounts):
    """The expected rows of a job without state: one row with the value 1 for every record."""

    def expected(self) -> Iterator[Record]:
        for offset, word in enumerate(read_log(self.path)):
            yield Record(offset, word, 1)


class Prices(RunningCounts):
    """The expected rows of the job `shop`: for every order the price of its item.

    Each of `edits` edits of the price list raises every price by 1.
    """

    def __init__(self, path: Path, edits: int) -> None:
        super().__init__(path)
        self._edits = edits

    def expected(self) -> Iterator[Record]:
        """Yield a row for every order, with the price of its item before any edit."""
        items = list(read_log(self.path))
        prices = first_prices(items)
        for offset, item in enumerate(items):
            yield Record(offset, item, prices[item])

    def outcomes(self) -> Mapping[int, Container[int]]:
        """Return for each order the first price of its item and the price after each edit.

        A failure-free run looks a price up once, at any moment, so each of these prices is correct.
        """
        if not self._edits:
            return {}
        return {offset: range(price, price + self._edits + 1) for offset, _, price in self.expected()}


class Totals(Count):
    """The expected rows of the job `totals`: for every word of a batch the last line with it, and its total so far.

    Two words may share their last line, so the judge identifies a row by a running number: batch after batch, sorted by
    word inside each batch.
    """

    def __init__(self, path: Path, lines_per_batch: int) -> None:
        super().__init__(path)
        self._lines_per_batch = lines_per_batch

    def check(self) -> int:
        """Read the whole input and return its number of lines. Raises `InvalidInput` if no line contains a word."""
        lines = number = 0
        for line in read_text(self.path):
            lines += 1
            number = number or len(words(line))
        if not number:
            raise InvalidInput(
                f"{self.path}: the input contains no word; a word consists of letters, numbers and apostrophes."
            )
        return lines

    def expected(self) -> Iterator[Record]:
        """Yield a row for every word of every batch, with a running number as its offset."""
        for number, (_, word, total, _) in enumerate(self._rows):
            yield Record(number, word, total)

    def numbered(self, rows: Iterable[Observation]) -> Iterator[Observation]:
        """Yield the rows with their running numbers as offsets; rows that no line explains get larger numbers."""
        number_of = {(line, word): number for number, (line, word, _, _) in enumerate(self._rows)}
        for row in rows:
            yield row._replace(offset=number_of.get((row.offset, row.key), len(number_of) + row.offset))

    def planned_batches(self, planned: Sequence[PlannedBatch]) -> Sequence[PlannedBatch]:
        rows = Counter(batch for *_, batch in self._rows)
        batches, start = [], 0
        for plan in planned:
            batches.append(PlannedBatch(plan.batch, start, start + rows[plan.batch]))
            start += rows[plan.batch]
        return batches

    @cached_property
    def _rows(self) -> Sequence[tuple[int, str, int, int]]:
        """For every expected row: the last line with the word, the word, its total, and the batch number."""
        return list(self._counted())

    def _counted(self) -> Iterator[tuple[int, str, int, int]]:
        totals: Counter[str] = Counter()
        lines = enumerate(read_text(self.path))
        batch = 0
        while some := list(islice(lines, self._lines_per_batch)):
            # Spark's update mode emits each word once in a batch, with the last line that contains it.
            last: dict[str, int] = {}
            for number, line in some:
                for word in words(line):
                    totals[word] += 1
                    last[word] = number
            yield from ((last[word], word, totals[word], batch) for word in sorted(last))
            batch += 1
