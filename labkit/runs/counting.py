"""Compute in plain Python the rows that each job should emit for an input, independently of Spark."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.core.records import Observation, PlannedBatch, Record, word_counts
from labkit.host.logs import read_log, read_text
from labkit.spark.outside import first_prices

WORD = re.compile(r"(?:[^\W_]|')+")
"""The pattern of a word: a maximal run of letters, numbers and apostrophes, `[\\p{L}\\p{N}']+` in Spark."""


def words(line: str) -> list[str]:
    """Return the words of a line in lower case."""
    return [word.lower() for word in WORD.findall(line)]


class Count(ABC):
    """Computes, without Spark, the rows that a job should write for an input file. Each kind of job has a subclass.

    The judge compares each row with the expected row that has the same offset. In most jobs, a row has the offset of
    its input record.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def check(self) -> int:
        """Read the whole input and return its number of records. Raises `InvalidInput` for a malformed record."""

    @abstractmethod
    def expected(self) -> Iterator[Record]:
        """Yield every row that the job should write, in order of offset."""

    def outcomes(self) -> Mapping[int, Container[int]]:
        """Return a dict from offset to all correct values, for rows of which more than one value is correct.

        For example, a price that the job looks up may be edited during the run.
        """
        return {}

    def numbered(self, rows: Iterable[Observation]) -> Iterator[Observation]:
        """Yield the rows of a store, each with the offset of its expected row.

        Here the rows are yielded unchanged, because in most jobs a row has this offset already. A subclass overrides
        this method if its job writes other numbers: `Totals` finds the expected row by line number and word.
        """
        yield from rows

    def planned_batches(self, planned: Sequence[PlannedBatch]) -> Sequence[PlannedBatch]:
        """Convert the batches that Spark `planned` from ranges of input lines to ranges of expected rows."""
        return planned


class RunningCounts(Count):
    """The expected output of the job `running`: for every record its offset, word, and the word's count so far."""

    def check(self) -> int:
        return sum(1 for _ in read_log(self.path))

    def expected(self) -> Iterator[Record]:
        return word_counts(read_log(self.path))


class Ones(RunningCounts):
    """The expected output of a job that keeps no counts: for every record its offset, its word, and the value 1."""

    def expected(self) -> Iterator[Record]:
        for offset, word in enumerate(read_log(self.path)):
            yield Record(offset, word, 1)


class Prices(RunningCounts):
    """The expected output of the job `shop`: for every order the price of its item.

    During the run labkit edits the list of prices `edits` times, and each edit raises every price by 1.
    """

    def __init__(self, path: Path, edits: int) -> None:
        super().__init__(path)
        self._edits = edits

    def expected(self) -> Iterator[Record]:
        """Yield one row per order, with the original price of its item."""
        items = list(read_log(self.path))
        prices = first_prices(items)
        for offset, item in enumerate(items):
            yield Record(offset, item, prices[item])

    def outcomes(self) -> Mapping[int, Container[int]]:
        """Return the correct prices of each order, by the order's offset: the original price, and that after each edit.

        All are correct, because a run without a crash may look up the price before or after an edit.
        """
        if not self._edits:
            return {}
        return {offset: range(price, price + self._edits + 1) for offset, _, price in self.expected()}


class Totals(Count):
    """The expected output of the job `totals`: for every distinct word of each batch, the word's count so far.

    In a row's field `offset`, Spark writes the number of the last line of the batch that contains the word. Two words
    may share that line, so the judge identifies rows by a serial number instead. Serial numbers count the rows batch
    after batch, and within a batch in the alphabetical order of words.
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
        """Yield one row for every distinct word of each batch, with the row's serial number as its offset."""
        for number, (_, word, total, _) in enumerate(self._rows):
            yield Record(number, word, total)

    def numbered(self, rows: Iterable[Observation]) -> Iterator[Observation]:
        """Yield the rows of a store, each with the serial number of its expected row as its offset.

        Before, the offset is the number of the input line that the row comes from. A row that nobody expects gets a
        number that is greater than all serial numbers.
        """
        number_of = {(line, word): number for number, (line, word, _, _) in enumerate(self._rows)}
        for row in rows:
            yield row._replace(offset=number_of.get((row.offset, row.key), len(number_of) + row.offset))

    def planned_batches(self, planned: Sequence[PlannedBatch]) -> Sequence[PlannedBatch]:
        rows = Counter(batch for *_, batch in self._rows)
        starts = accumulate((rows[plan.batch] for plan in planned), initial=0)
        return [PlannedBatch(plan.batch, *span) for plan, span in zip(planned, pairwise(starts), strict=True)]

    @cached_property
    def _rows(self) -> Sequence[tuple[int, str, int, int]]:
        return list(self._counted())

    def _counted(self) -> Iterator[tuple[int, str, int, int]]:
        totals: Counter[str] = Counter()
        lines = enumerate(read_text(self.path))
        batch = 0
        while some := list(islice(lines, self._lines_per_batch)):
            last: dict[str, int] = {}
            for number, line in some:
                for word in words(line):
                    totals[word] += 1
                    last[word] = number
            yield from ((last[word], word, totals[word], batch) for word in sorted(last))
            batch += 1
