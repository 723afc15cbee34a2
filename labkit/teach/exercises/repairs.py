"""The exercise of notebook 14c: the ranges of a table that differ from its source and have to be repaired."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise
from operator import itemgetter
from typing import cast

from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.confused import NUMBERS_ALIKE, PAIRS_ALIKE, SAME_TEXTS, numbers_alike, texts_alike
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import Cases

Row = tuple[int, str, int]
"""The number of an order, its item, and its amount."""
Ranges = list[list[int]]
"""The first and the last number of each range, both included."""
Content = tuple[str, int]
"""The item of an order, and its amount."""
Change = tuple[Row | None, Row | None]
"""A row of the source, and the row that the table has in its place; None for no row."""
ITEMS = ("pen", "book", "lamp")
LONGEST_ITEM, MOST_ROWS, LARGEST_ID, LARGEST_SIZE = 200, 1_200, 2_000_000, 100_000
"""The bounds that the task states."""


def _tables(variant: Variant) -> Iterator[tuple[list[Row], list[Row], int]]:
    """Yield for each call of the learner's function the rows of a table, the rows of its source, and a range's length.

    The variant describes the tables in one of two ways. Either `orders` lists the numbers of the orders in the source,
    and `damage` has for each call a list of changes to the table (see `_table`). Or `changed` has for each call a list
    of pairs: a row of the source, and the same order's row in the table.
    """
    changed: Iterable[Sequence[Change]] = dict(variant.parameters).get("changed", ())
    for call in changed:
        yield [new for _, new in reversed(call) if new], [old for old, _ in call if old], variant["size"]
    if not changed:
        source = [_row(number) for number in variant["orders"]]
        for changes in variant["damage"]:
            yield _table(source, changes), source, variant["size"]


def contents_alike(word: str, large: int) -> Iterator[tuple[Content, Content]]:
    """Yield pairs of different contents (item, amount) that a careless comparison takes for equal.

    The items are similar to `word`, or the amounts are similar to `large`.
    """
    long = (word * LONGEST_ITEM)[: LONGEST_ITEM - 1]
    half = long[: LONGEST_ITEM // 2]
    items = [("", " ")]
    items += [(f"{long}a", f"{long}b"), (f"a{long}", f"b{long}"), (f"{half}a{half[1:]}", f"{half}b{half[1:]}")]
    for group in texts_alike(word):
        short = [text for text in group if len(text) <= LONGEST_ITEM]
        # Of five texts with a mark, two pairs are enough: those that are cut at the mark, and those that are stripped.
        items += [(short[0], short[1]), (short[2], word)] if short[-1:] == [word] else pairwise(short)
    yield from (((one, 3), (other, 3)) for one, other in dict.fromkeys(items) if one != other)
    amounts = [*((large, other) for other in numbers_alike(large)), *pairwise((*NUMBERS_ALIKE, NUMBERS_ALIKE[0]))]
    amounts += [(3, 3 + 10**power) for power in range(1, 18)] + [(0, -1), (1, 0), (-1, -2), (-(2**53), -(2**53) - 1)]
    yield from (((word, one), (word, other)) for one, other in amounts)


def calls_with(contents: Iterable[tuple[Content, Content]], size: int) -> tuple[tuple[Change, ...], ...]:
    """Return the rows for calls of the learner's function, with one order for each pair in `contents`.

    The first item of such a pair is the order's content in the source, the second one that in the table. Each order is
    in a range of its own, and the next range is empty. `size` is the length of a range.
    """
    numbers = (2 * place * size + place % size for place in count())
    changes = [((number, *old), (number, *new)) for number, (old, new) in zip(numbers, contents, strict=False)]
    return tuple(tuple(changes[begin : begin + IN_A_CALL]) for begin in range(0, len(changes), IN_A_CALL))


IN_A_CALL = 20
"""The largest number of orders of a call in `calls_with`: many calls cost time, and so do many ranges."""


def ends_changed(first: int) -> tuple[Change, ...]:
    """Return the rows for one call of the learner's function, as pairs (row of the source, row of the table).

    There are `MOST_ROWS` orders, numbered from `first`. The two rows of an order are equal, except for the first and
    the last order, whose amounts differ.
    """
    rows = [_row(first + number) for number in range(MOST_ROWS)]
    ends = (first, first + MOST_ROWS - 1)
    return tuple((row, (row[0], row[1], row[2] + 1) if row[0] in ends else row) for row in rows)


def numbers_exchanged(word: str) -> tuple[tuple[Change, ...], ...]:
    """Return the rows for calls of the learner's function, as pairs (row of the source, row of the table).

    In the table, every order has a wrong number, which is in the same range as the right number. The two numbers differ
    by an amount such as 97 or 10,000, so that a careless comparison confuses them. Every order has the item `word`.
    """
    apart = (*(10**power for power in range(1, 5)), 97, 256, 997, 9_973, 2**15, 2**16)
    apart += (9, 99, 101, 1_024, 4_096, 65_521, 65_537, 99_991, 54, 90)
    halves = (apart[: len(apart) // 2], apart[len(apart) // 2 :])
    begins = range(0, LARGEST_ID, 2 * LARGEST_SIZE)
    return tuple(
        tuple(((begin + 6, word, 3), (begin + 6 + step, word, 3)) for begin, step in zip(begins, half, strict=True))
        for half in halves
    )


def _row(number: int) -> Row:
    return number, ITEMS[number % 3], 10 + number % 7


def _table(source: Sequence[Row], changes: Sequence[tuple[str, int]]) -> list[Row]:
    """Return the rows of a damaged table, in the reverse order of the source.

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


def _wrong(ask: Asker, case: tuple[list[Row], list[Row], int]) -> Finding | None:
    table, source, size = case
    arguments: tuple[Plain, ...] = ([list(row) for row in table], [list(row) for row in source], size)
    answer = ask(*arguments)
    ranges = _ranges(answer)
    if ranges is None:
        raise Unusable(f"{ask.with_answer(*arguments)}; return a list of ranges [first, last], not {shown(answer)}.")
    why = dict(_damages(table, source, size))
    right = _merged([[first, first + size - 1] for first in why])
    if ranges == right:
        return None
    statement = ask.with_answer(*arguments)
    message, general = _compare(ranges, right, why, size)
    return Finding(False, f"{statement}. {message}", statement, _text(right), general=general)


def _text(ranges: Ranges) -> str:
    return shown([[first, last] for first, last in ranges])


def _ranges(answer: Plain) -> Ranges | None:
    if type(answer) is not list:
        return None
    is_range = (type(each) is list and len(each) == 2 and all(type(end) is int for end in each) for each in answer)
    return cast("Ranges", answer) if all(is_range) else None


def _damages(table: Sequence[Row], source: Sequence[Row], size: int) -> Iterator[tuple[int, str]]:
    """Count how often each row occurs in the two lists, and yield a pair for each row whose counts differ.

    A pair has the first number of the range to which the row belongs, and the damage as text. `size` is the length of a
    range of order numbers.
    """
    there, right = Counter(table), Counter(source)
    known, present = {row[0] for row in source}, {row[0] for row in table}
    for row in sorted(row for row in {*there, *right} if there[row] != right[row]):
        number = row[0]
        if number not in known:
            reason = f"order {number} is in the table and not in the source"
        elif number not in present:
            reason = f"order {number} is missing"
        elif right[row] and there[row] > right[row]:
            reason = f"order {number} is in the table {there[row]} times"
        else:
            reason = f"order {number} has another item or amount: {shown(list(row))} is in one list only"
        yield number // size * size, reason


def _merged(ranges: Ranges) -> Ranges:
    """Join ranges that overlap or touch, and return the resulting ranges in ascending order."""
    merged: Ranges = []
    for first, last in sorted(each for each in ranges if each[0] <= each[1]):
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = max(last, merged[-1][1])
        else:
            merged.append([first, last])
    return merged


def _hold(merged: Ranges, first: int, last: int) -> bool:
    # The search relies on ranges that are in ascending order and do not touch.
    place = bisect_right(merged, first, key=itemgetter(0))
    return place > 0 and last <= merged[place - 1][1]


def _compare(ranges: Ranges, right: Ranges, why: dict[int, str], size: int) -> tuple[str, str]:
    """Return two messages on the first difference between the learner's ranges and the right ones.

    The first message names the range; the second one gives away no numbers. `why` maps the first number of each damaged
    range to the damage, and `size` is the length of a range.
    """
    merged = _merged(ranges)
    for first, reason in sorted(why.items()):
        if not _hold(merged, first, first + size - 1):
            general = "A part of a damaged range is not in the answer."
            return f"{first} to {first + size - 1} is damaged: {reason}.", general
    for first, last in ranges:
        if first > last or not _hold(right, first, last):
            return (f"[{first}, {last}] also names orders that need no repair.", "An undamaged range is in the answer.")
    if sorted(ranges) == right:
        return f"List the ranges in ascending order: {_text(right)}.", "The ranges are not in order."
    return f"Join ranges that touch, and list each once: {_text(right)}.", "Ranges touch or overlap."


_LONG = "pen-" * 49
_TEXTS = (
    *(pair for pair in PAIRS_ALIKE + SAME_TEXTS if len(pair[0]) <= LONGEST_ITEM),
    *((f"{_LONG}pens", f"{_LONG}pen "), (f"{_LONG}\U0001f600", f"{_LONG}\U0001f601"), ("book", "BOOK"), ("", " ")),
    *((" pen", "pen"), ("pen\nbook", "pen book")),
)
_AMOUNTS = (
    *((2**53, 2**53 + 1), (3, 1_003), (7, 7 + 2**32), (0, 1), (1, 10), (0, -1), (10**18, 10**18 + 10**9)),
    (2**62, 3),
)
SOME_ALIKE: tuple[tuple[Content, Content], ...] = (
    *(((one, 3), (other, 3)) for one, other in _TEXTS),
    *((("pen", one), ("pen", other)) for one, other in _AMOUNTS),
)
"""Pairs of different contents of an order that a comparison takes for equal if it cuts, strips or simplifies them."""
OF_LITTLE: tuple[tuple[Change, ...], ...] = (
    ((None, (2, "pen", 0)), ((9, "pen", 3), (9, "pen", 3))),
    (((1, "pen", 0), None), ((9, "pen", 3), (9, "pen", 3))),
    ((None, (3, "", 3)), ((0, "", 0), None), ((9, "", 3), (9, "", 3)), ((17, "", 0), (17, "", 0))),
)
"""Calls in which rows with the amount 0, an empty item or the number 0 are missing from the table or the source."""
DAMAGED = Cases("damaged", _tables, _wrong, "It finds the ranges to repair in {} tables")
JUDGES = {
    "14c-damaged": by(
        DAMAGED.judge,
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
        variant("items and amounts that are alike", size=3, changed=calls_with(SOME_ALIKE, 3)),
        variant("rows of little", size=4, changed=OF_LITTLE),
        variant("as many rows as there may be", size=250, changed=(ends_changed(100),)),
        variant(
            "the largest numbers",
            size=LARGEST_SIZE,
            changed=(*numbers_exchanged("pen"), ((None, (LARGEST_ID, "pen", 1)),)),
        ),
    )
}
