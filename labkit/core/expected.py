"""A compact table of the expected records, for the judge of long histories and for the explanation of a verdict."""

import struct
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress, count, islice, repeat
from operator import ge

from labkit.core.errors import InvalidInput
from labkit.core.records import PlannedBatch, Record

# An expected record is packed into 34 bytes: its value, the numbers of its key and its planned batch; whether it has an
# effect, and which batch and incarnation wrote it; a bit for each anomaly. The parts of a record are side by side,
# because observations may come in any order: each then costs one cache miss, whereas one array for each part would cost
# a miss for each array. The constants are the layouts of the parts, the positions where some start, the size of a
# record, and the values for "no record".
NEW, FACTS, EFFECT = (struct.Struct("=qii18x"), struct.Struct("=qii?"), struct.Struct("=?qq"))
NUMBER = struct.Struct("=8xi22x")
PLAN_AT, EFFECT_AT, MARKS_AT, SIZE = 12, 16, 33, NEW.size
NOWHERE = (0, -1, -1, False)


@contextmanager
def refusing_large_numbers() -> Iterator[None]:
    """In a `with` block, turn Python's errors about numbers beyond 64 bits into `InvalidInput`."""
    try:
        yield
    except (OverflowError, struct.error) as error:
        raise InvalidInput(
            "An offset, value or batch number of a record or row is not a whole number that fits into 64 bits; "
            "use a smaller whole number."
        ) from error


def out_of_order(number: int, offset: int, before: int) -> InvalidInput:
    """Return the error for record `number` (from 1), whose offset is not above the previous record's, `before`."""
    return InvalidInput(
        f"Expected record {number}: its offset {offset} is not above the previous one, {before}; sort the records by "
        "offset."
    )


def check_planned(planned_batches: Sequence[PlannedBatch]) -> None:
    """Raise `InvalidInput` if a planned batch ends before it starts, or starts before the previous batch ends."""
    for number, plan in enumerate(planned_batches):
        overlaps = number > 0 and plan.start < planned_batches[number - 1].end
        if plan.end < plan.start or overlaps:
            raise InvalidInput(
                f"Planned batch {number + 1}: {plan} ends before it starts, or starts before the previous one "
                "ends; sort the batches by offset."
            )


class ExpectedRecords:
    """The records that a job should write, packed into bytes, so that millions of them fit into memory."""

    def __init__(self, records: Iterable[Record]) -> None:
        number_of: dict[str, int] = defaultdict(count().__next__)
        self.rows, offsets = bytearray(), array("q")
        records = iter(records)
        while some := list(islice(records, 500)):  # so few that they do not start a garbage collection
            its_offsets, keys, values = zip(*some, strict=True)
            offsets.extend(its_offsets)
            self.rows += b"".join(map(NEW.pack, values, map(number_of.__getitem__, keys), repeat(-1)))
        for index in compress(count(1), map(ge, offsets, islice(offsets, 1, None))):
            raise out_of_order(index + 1, offsets[index], offsets[index - 1])
        self.keys = list(number_of)
        del number_of
        self._place(offsets)

    def _place(self, offsets: "array[int]") -> None:
        """Index the records by offset, in an array, or in a dict if the offsets are too far apart for an array."""
        self.offsets: Sequence[int] = offsets
        self.first = offsets[0] if offsets else 0
        self.span = offsets[-1] - self.first + 1 if offsets else 0
        self.table: Sequence[int] = ()
        self.sparse: dict[int, int] = {}
        if self.span == len(offsets):
            self.offsets, self.table = (range(self.first, self.first + self.span), range(self.span))
        elif self.span <= 4 * len(offsets):
            self.table = table = array("i", [-1]) * self.span
            for index, offset in enumerate(offsets):
                table[offset - self.first] = index
        else:
            self.span, self.sparse = 0, dict(zip(offsets, count(), strict=False))

    def plan(self, planned_batches: Sequence[PlannedBatch]) -> tuple["array[int]", "array[int]"]:
        """Return each record's planned batch (its index, or -1 for none), and each planned batch's number of records.

        Raises `InvalidInput` like `check_planned`.
        """
        check_planned(planned_batches)
        batch_of, sizes = array("i", [-1]) * len(self.offsets), array("q")
        for number, plan in enumerate(planned_batches):
            begin, end = (bisect_left(self.offsets, offset) for offset in (plan.start, plan.end))
            batch_of[begin:end] = array("i", [number]) * (end - begin)
            sizes.append(end - begin)
        return batch_of, sizes

    def place(self, offset: int) -> int:
        """Return the index of the record with this offset, or -1 if there is no such record."""
        position = offset - self.first
        return self.table[position] if 0 <= position < self.span else self.sparse.get(offset, -1)

    def facts(self, index: int) -> tuple[int, int, int, bool]:
        """Return a record's value, its key's number, its planned batch's number, and whether the record has an effect.

        The batch's number is -1 if the record is in no planned batch. An effect is a row that was read and not aborted.
        """
        value, number, plan, has_effect = FACTS.unpack_from(self.rows, index * SIZE)
        return value, number, plan, has_effect

    def key(self, index: int) -> str:
        return self.keys[self.facts(index)[1]]
