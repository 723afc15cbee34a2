"""The exercise of notebook 14c: the ranges of a table that differ from its source and have to be repaired."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import ask_each

Row = tuple[int, str, int]
"""The number of an order, its item, and its amount."""
Ranges = list[list[int]]
"""The first and the last number of each range, both included."""
ITEMS = ("pen", "book", "lamp")


def judge_damaged(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's function that compares a table with its source, on each damaged table of the variant.

    The variant has `orders`, the numbers of the orders in the source; `size`, the number of orders in a range; and
    `damage`, which lists for each call the changes to the table, as `_table` applies them.
    """
    ask = Asker(answer, "damaged")
    source = [_row(number) for number in variant["orders"]]
    right = "It finds the ranges to repair in {} tables"
    return ask_each(ask, variant["damage"], lambda changes: _wrong(ask, source, changes, variant["size"]), right)


def _row(number: int) -> Row:
    return number, ITEMS[number % 3], 10 + number % 7


def _table(source: Sequence[Row], changes: Sequence[tuple[str, int]]) -> list[Row]:
    """Return the rows of a damaged table, not in order: the last row of the source comes first.

    Each change is a kind of damage and the number of an order: `lost`, `twice`, `item` (a wrong item), `more` and
    `less` (the amount is wrong by 1), `blank` (the item ends in a blank), `glued` (the item ends in the amount's first
    digit), `minus` (the amount is negative), `exchanged` (item and amount are swapped with those of the next order), or
    `ghost` and `early ghost` (a row that the source lacks, at the end or at the beginning of the table).
    """
    rows = list(reversed(source))
    for kind, number in changes:
        row = _row(number)
        if kind in {"ghost", "twice"}:
            rows.append(row)
            continue
        if kind == "early ghost":
            rows.insert(0, row)
            continue
        if kind == "exchanged":
            other = _row(number + 1)
            for each, content in ((row, other), (other, row)):
                rows[rows.index(each)] = (each[0], *content[1:])
            continue
        place = rows.index(row)
        _, item, amount = rows.pop(place)
        if kind != "lost":
            changed: dict[str, Row] = {
                "item": (number, "none", amount),
                "more": (number, item, amount + 1),
                "less": (number, item, amount - 1),
                "blank": (number, f"{item} ", amount),
                "glued": (number, f"{item}{str(amount)[0]}", int(str(amount)[1:])),
                "minus": (number, item, -amount),
            }
            rows.insert(place, changed[kind])
    return rows


def _wrong(ask: Asker, source: Sequence[Row], changes: Sequence[tuple[str, int]], size: int) -> Finding | None:
    table = _table(source, changes)
    arguments: tuple[Plain, ...] = ([list(row) for row in table], [list(row) for row in source], size)
    answer = ask(*arguments)
    statement = ask.with_answer(*arguments)
    ranges = _ranges(answer)
    if ranges is None:
        raise Unusable(f"{statement}; return a list of ranges [first, last], not {shown(answer)}.")
    why = dict(_damages(table, source, size))
    right = _joined(sorted(why), size)
    if ranges == right:
        return None
    message, general = _compare(ranges, right, why, size)
    return Finding(False, f"{statement}. {message}", statement, _text(right), general=general)


def _text(ranges: Ranges) -> str:
    return shown([[first, last] for first, last in ranges])


def _ranges(answer: Plain) -> Ranges | None:
    """Return the learner's answer as ranges, or None if the answer is not a list of pairs of numbers."""
    if type(answer) is not list:
        return None
    ranges = []
    for each in answer:
        if type(each) is not list or len(each) != 2 or any(type(end) is not int for end in each):
            return None
        ranges.append(cast("list[int]", each))
    return ranges


def _damages(table: Sequence[Row], source: Sequence[Row], size: int) -> Iterator[tuple[int, str]]:
    """Yield for each damaged row a pair: the first number of the row's range, and the damage as text."""
    there, right = Counter(table), Counter(source)
    known, present = {row[0] for row in source}, {row[0] for row in table}
    for row in sorted({*there, *right}):
        number = row[0]
        if there[row] == right[row]:
            continue
        if number not in known:
            reason = f"order {number} is in the table and not in the source"
        elif number not in present:
            reason = f"order {number} is missing"
        elif right[row] and there[row] > right[row]:
            reason = f"order {number} is in the table {there[row]} times"
        else:
            reason = f"order {number} has another item or amount"
        yield number // size * size, reason


def _joined(firsts: Sequence[int], size: int) -> Ranges:
    """Return the ranges of `size` numbers that begin at `firsts`, with adjacent ranges joined into one."""
    ranges: Ranges = []
    for first in firsts:
        if ranges and ranges[-1][1] + 1 == first:
            ranges[-1][1] += size
        else:
            ranges.append([first, first + size - 1])
    return ranges


def _compare(ranges: Ranges, right: Ranges, why: dict[int, str], size: int) -> tuple[str, str]:
    """Return two messages on the first difference between the learner's and the right ranges.

    Only the first message has details. `why` maps the first number of each damaged range to the damage, and `size` is
    the length of a range.
    """

    def is_covered(number: int) -> bool:
        return any(first <= number <= last for first, last in ranges)

    for first, reason in sorted(why.items()):
        if not all(is_covered(number) for number in range(first, first + size)):
            general = "A part of a damaged range is not in the answer."
            return f"{first} to {first + size - 1} is damaged: {reason}.", general
    for first, last in ranges:
        if not any(begin <= first <= last <= end for begin, end in right):
            return (f"[{first}, {last}] also names orders that need no repair.", "An undamaged range is in the answer.")
    if sorted(ranges) == right:
        return f"List the ranges in ascending order: {_text(right)}.", "The ranges are not in order."
    return f"Ranges that touch are one repair: {_text(right)}.", "Ranges that touch are not joined, or come twice."


JUDGES = {
    "14c-damaged": by(
        judge_damaged,
        variant(
            "ranges of four",
            orders=tuple(range(16)),
            size=4,
            damage=(
                (),
                (("lost", 5),),
                (("twice", 9),),
                (("lost", 1), ("twice", 2)),
                (("item", 6),),
                (("more", 4), ("less", 7)),
                (("twice", 3), ("lost", 8)),
                (("lost", 2), ("lost", 4)),
                (("ghost", 17),),
                tuple(("lost", number) for number in range(4, 8)),
                tuple(("lost", number) for number in range(16)),
                (("exchanged", 9),),
                (("twice", 9), ("twice", 9)),
            ),
        ),
        variant(
            "gaps in the numbers",
            orders=(3, 4, 6, 10, 11, 30, 31, 32, 33, 47),
            size=10,
            damage=(
                (("ghost", 5),),
                (("ghost", 29), ("lost", 30)),
                (("lost", 11), ("lost", 30)),
                (("lost", 47),),
                (("lost", 3), ("twice", 47)),
            ),
        ),
        variant(
            "changes that are easy to overlook",
            orders=(0, 1, 2, 5, 6, 7, 9, 10),
            size=3,
            damage=((("blank", 5),), (("glued", 6),), (("minus", 10),)),
        ),
        variant("no rows in the source", orders=(), size=1, damage=((), (("ghost", 4),), (("ghost", 2), ("ghost", 4)))),
    )
}
