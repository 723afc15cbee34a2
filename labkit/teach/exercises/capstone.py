"""The exercises of notebooks 14 and 14b: eight sinks to judge, the learner's own sinks, and a report for a person."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count

from labkit.core.judge import Guarantee
from labkit.teach.exercises import kills
from labkit.teach.exercises.asking import Unusable
from labkit.teach.exercises.constants import named_values
from labkit.teach.exercises.contract import Answer, Finding, Variant, by, variant
from labkit.teach.exercises.own_sink import axes
from labkit.teach.exercises.own_sink.axes import judge_axis
from labkit.teach.exercises.own_sink.trials import Row

EIGHT: Mapping[str, Guarantee] = {
    "a": Guarantee.AT_LEAST_ONCE,
    "b": Guarantee.AT_LEAST_ONCE,
    "c": Guarantee.EXACTLY_ONCE,
    "d": Guarantee.AT_MOST_ONCE,
    "e": Guarantee.EXACTLY_ONCE,
    "f": Guarantee.AT_MOST_ONCE,
    "g": Guarantee.NONE,
    "h": Guarantee.EXACTLY_ONCE,
}
"""The right guarantees of the eight sinks in notebook 14, predicted by hand; a test measures them."""


def judge_eight(answer: Answer, _variant: Variant) -> Finding:
    """Check the guarantees predicted for eight sinks; the message says how many are right, but not which."""
    try:
        guarantees = named_values("guarantees", answer.value(), dict.fromkeys(EIGHT, kills.WORDS))
    except Unusable as error:
        return Finding(False, str(error))
    right = sum(guarantees[letter] == each for letter, each in EIGHT.items())
    if right == len(EIGHT):
        return Finding(True, "All eight agree with the measurement.")
    return Finding(False, f"{right} of {len(EIGHT)} agree with the measurement.")


def numbered(batches: Sequence[Sequence[tuple[str, int]]]) -> list[list[Row]]:
    """Return batches of rows, made from pairs of an item and an amount; `id` counts from 1 across all batches."""
    numbers = count(1)
    return [[{"id": next(numbers), "item": item, "amount": amount} for item, amount in batch] for batch in batches]


def moved(batches: list[list[Row]], by: int) -> list[list[Row]]:
    """Return a copy of the batches in which the number `by` is added to every row's `id`."""
    return [[row | {"id": int(str(row["id"])) + by} for row in batch] for batch in batches]


NASTY = 'O\'Brien-"L"-\\n-&lt;-\xb2-caf\xe9-nai\u0308ve-\u4e2d-\U0001f600-\n\t '
"""A text with quotes, escapes, two normal forms, a letter above 16 bits, and three kinds of white space at its end."""
LONG_ITEM = f"{'cup-' * 50}"[: 200 - len(NASTY)] + NASTY
"""An item of as many characters as the task allows."""
PUBLIC = moved(
    numbered([[("pen", 2), ("book", 1), ("pen", 2)], [("007", 0), ("pen", 2)], [("", 1), (LONG_ITEM, 3)]]), 100
)
MOST_ROWS = 60
"""The largest number of rows of a batch, as the tasks say."""
WIDE = moved(numbered([[(("pen", "cup", "ink")[number % 3], number % 4) for number in range(MOST_ROWS)]]), 500)
"""A single batch with as many rows as the tasks allow."""
OTHERS = numbered([[("pen", 2), ("ink", 1)], [("lamp", 1), ("pen", 2)], [("cup", 3)]])
"""The rows of the second query; a sink that keeps one largest number for all queries loses these smaller ones."""
QUERIES = (("orders", "orders1"), ("orders-1", "orders"), ("queryX2", "query_2"))
"""Pairs of queries whose names, or names with batch numbers, are easily confused."""

SAME_DIGESTS = {
    "orders-of-shop": (1_429, 54_762, 41_702, 58_273, 55_093, 87_924),
    "clicks-on-page": (81_648, 97_240, 7_435, 51_231, 11_724, 34_146),
}
"""For each name three pairs of numbers to append, as in `orders-of-shop-1429`, that give two names with similar hashes.

The first eight hexadecimal digits of their MD5, SHA-1 and SHA-256, respectively, are the same.
"""
SAME_CHECKSUMS = {"orders-of-shop": ("plumless", "buckeroo"), "clicks-on-page": ("wb2d995eq23682", "wefa50ccq31732")}
"""For each name of `SAME_DIGESTS` two other names whose CRC-32 is the same."""


def alike(name: str, digested: str, *, blanks: bool = True) -> list[str]:
    """Return `name` and similar names of queries; a sink that shortens, hashes or normalises names confuses some.

    Most of them differ from `name` in one respect: the case of a letter, the beginning, the end, the order of letters
    or, if `blanks` is true, a blank or a combining accent. Two long names differ only in their last character. One name
    has a 0 in front of `name`: if a sink joins batch number and name, batch 1 of it looks like batch 10 of `name`.

    The last names are pairs with the same CRC-32 or Adler-32, or with hash digests that begin alike, so a sink that
    compares checksums or shortened digests confuses them. `digested` is a key of `SAME_CHECKSUMS` and `SAME_DIGESTS`,
    from which these pairs are taken, such as `orders-of-shop`.
    """
    names = [name, f"{name}s", f"{name[:-1]}{name[-1].upper()}", name.capitalize(), f"0{name}", name.replace("-", "_")]
    names += [
        f"{name[1]}{name[0]}{name[2:]}",
        *([f"{name} ", f" {name}", f"{name}-\xe9", f"{name}-e\u0301"] if blanks else []),
    ]
    names += [f"{name}-{'-'.join([name] * 3)}-{number}" for number in (1, 2)]
    names += [name[1:], name[:-1], *SAME_CHECKSUMS[digested], f"{digested}-acca", f"{digested}-bbbb"]
    return [*names, *(f"{digested}-{number}" for number in SAME_DIGESTS[digested])]


MANY = 12
"""A number of batches large enough for batch numbers of one and two digits."""
ITEMS = (
    "",
    f"{'Pen-' * 50}"[: 200 - len(NASTY)] + NASTY,
    "007",
    ' O\'Brien-"L"\U0001f600\n',
    "\u4e2d-nai\u0308ve\n-caf\xe9\t",
)
"""Items that a sink may mishandle: empty, long, a number as text, white space at the ends, accents, other letters."""

TABLE, WRITERS = axes.AXES["table"], axes.AXES["writers"]
FOLDER = (axes.CRASH, axes.READER, axes.SECOND, axes.LEFT, axes.OLDER, axes.QUERY)
"""The separately graded aspects (axes) of the exercise `14b-folder`; the points of each are in `texts`."""

EPOCHS = ([5], [1])
"""The epochs of the writers of two queries, which are independent: the smaller epoch is not that of an older writer."""


def public(
    parts: Sequence[str], epochs: tuple[list[int], list[int]] = ([], []), *, blanks: bool = True
) -> tuple[Variant, ...]:
    """Return one test configuration for each of `parts`, the separately graded properties, such as crash safety.

    `epochs` has one list for each of the two queries. The list `[5]` means that the query's writer has the epoch
    (fencing number) 5, which the sink gets as the argument before the query's name. An empty list means that the sink
    gets no epoch. `blanks` tells whether names of queries may contain blanks.
    """
    return tuple(
        variant(
            axis,
            axis=axis,
            batches=PUBLIC,
            query=[*epochs[0], "orders"],
            others=OTHERS,
            other=[*epochs[1], "refunds"],
            alike=alike("orders-of-the-north", "orders-of-shop", blanks=blanks),
            wide=WIDE,
        )
        for axis in parts
    )


JUDGES = {
    "14-judge": by(judge_eight, variant("eight sinks")),
    "14-kills": by(kills.KILLS.judge, *kills.PUBLIC),
    "14-table": by(partial(judge_axis, name="write_batch", kind="table"), *public(TABLE)),
    "14b-folder": by(partial(judge_axis, name="write_files", kind="folder"), *public(FOLDER, blanks=False)),
    "14b-writers": by(partial(judge_axis, name="write_fenced", kind="table"), *public(WRITERS, EPOCHS)),
}
