"""The exercises of notebooks 14 and 14b: eight sinks to judge, the learner's own sinks, and a report for a person."""

from collections.abc import Mapping, Sequence
from functools import partial

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
    """Check the learner's predictions of the guarantees of eight sinks.

    The message says how many predictions are right but not which, so the learner has to think about all of them again.
    """
    try:
        guarantees = named_values("guarantees", answer.value(), dict.fromkeys(EIGHT, kills.WORDS))
    except Unusable as error:
        return Finding(False, str(error))
    right = sum(guarantees[letter] == each for letter, each in EIGHT.items())
    if right == len(EIGHT):
        return Finding(True, "All eight agree with the measurement.")
    return Finding(False, f"{right} of {len(EIGHT)} agree with the measurement.")


def rows(*batches: str) -> list[list[Row]]:
    """Return one list of rows for each text in `batches`, such as `pen:2 book:1` for 2 pens and 1 book.

    A row is a dict with a number (`id`, counted from 1 across all batches), an item and an amount.
    """
    results: list[list[Row]] = []
    number = 0
    for batch in batches:
        results.append([])
        for word in batch.split(" "):  # an item may have a tab
            item, _, amount = word.partition(":")
            number += 1
            results[-1].append({"id": number, "item": item, "amount": int(amount)})
    return results


def moved(batches: list[list[Row]], by: int) -> list[list[Row]]:
    """Return a copy of the batches in which every row's `id` is larger by the number `by`."""
    return [[row | {"id": int(str(row["id"])) + by} for row in batch] for batch in batches]


LONG_ITEM = f"{'cup-' * 49}cup\t"
"""An item of as many characters as the task allows; it ends in a tab."""
PUBLIC = moved(rows("pen:2 book:1 pen:2", "lamp:0 pen:2", f":1 {LONG_ITEM}:3"), 100)
OTHERS = rows("pen:2 ink:1", "lamp:1 pen:2", "cup:3")
"""The rows of the second query, with smaller numbers than those of the first.

A sink that keeps one largest number for all queries loses them.
"""
QUERIES = (("orders", "orders1"), ("orders-1", "orders"), ("queryX2", "query_2"))
"""Pairs of queries whose names, or names with batch numbers, are easily confused."""


SAME_DIGESTS = {
    "orders-of-shop": (1_429, 54_762, 41_702, 58_273, 55_093, 87_924),
    "clicks-on-page": (81_648, 97_240, 7_435, 51_231, 11_724, 34_146),
}
"""For each name three pairs of numbers to append, as in `orders-of-shop-1429`, that give two names with similar hashes.

The first eight hexadecimal digits of their MD5, SHA-1 and SHA-256, respectively, are the same.
"""


def alike(name: str, digested: str, *, blanks: bool = True) -> list[str]:
    """Return names that a sink confuses with `name` if it shortens, hashes or normalises names of queries.

    Most names differ from `name` in one respect: the case of a letter, the beginning, the end, the order of letters or,
    if `blanks` is true, a blank or a combining accent. Two names differ only after 60 letters. One begins with a digit,
    so that a sink which joins batch number and name can confuse it. The last names, built from `digested` and the
    numbers in `SAME_DIGESTS`, are pairs whose hash digests begin alike, so that a sink which cuts digests short
    confuses them.
    """
    names = [name, f"{name}s", f"{name[:-1]}{name[-1].upper()}", name.capitalize(), f"0{name}", name.replace("-", "_")]
    names += [
        f"{name[1]}{name[0]}{name[2:]}",
        *([f"{name} ", f" {name}", f"{name}-e\u0301", f"{name}-\xe9"] if blanks else []),
    ]
    names += [f"{name}-{'-'.join([name] * 3)}-{number}" for number in (1, 2)]
    return [*names, *(f"{digested}-{number}" for number in SAME_DIGESTS[digested])]


MANY = 12
"""A number of batches large enough for batch numbers of one and two digits."""
ITEMS = ("", f"{'Pen-' * 50}", 'O\'Brien-"L"', "7", "\u4e2d-nai\u0308ve\t")
"""Items that a sink easily mishandles: an empty and a long one, quotes of both kinds, a number as text, and one that
ends in a tab and has a letter composed of two characters.
"""

TABLE, WRITERS = axes.AXES["table"], axes.AXES["writers"]
FOLDER = (axes.CRASH, axes.READER, axes.SECOND, axes.LEFT, axes.OLDER, axes.QUERY)
"""The separately graded aspects (axes) of the exercise `14b-folder`; the points of each are in `texts`."""

EPOCHS = ([5], [1])
"""The epoch of the writer of each of two queries.

Epochs of different queries are independent, so the smaller one does not belong to an older writer.
"""


def public(
    parts: Sequence[str], epochs: tuple[list[int], list[int]] = ([], []), *, blanks: bool = True
) -> tuple[Variant, ...]:
    """Return the tests that learners may see in an exercise on writing a sink: one `Variant` for each entry of `parts`.

    An entry of `parts` names a property of the sink that is graded separately, such as crash safety. `epochs` lists,
    for each of two queries, the epochs (fencing numbers) of its successive writers; if `epochs` is given, a sink gets
    the epoch as an argument before the query's name. `blanks` tells whether names of queries may contain blanks.
    """
    return tuple(
        Variant(
            axis,
            (
                ("axis", axis),
                ("batches", PUBLIC),
                ("query", [*epochs[0], "orders"]),
                ("others", OTHERS),
                ("other", [*epochs[1], "refunds"]),
                ("alike", alike("orders-of-the-north", "orders-of-shop", blanks=blanks)),
            ),
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
