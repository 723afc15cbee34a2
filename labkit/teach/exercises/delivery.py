"""The exercises of notebook 02: a receiver that recognises repeated messages, a chain of processes, and predictions."""

from collections.abc import Iterator

from labkit.teach.exercises.asking import Asker, a_list, shown
from labkit.teach.exercises.confused import SAME_DIGITS, numbers_alike
from labkit.teach.exercises.constants import Prediction, Settings
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import Cases, Drill, by_parameter
from labkit.teach.study import replay


def _single_messages(variant: Variant) -> Iterator[tuple[int, list[int]]]:
    """Yield pairs of a message id and the table `known`; some ids are in the table, others are new but similar."""
    known = list(variant["known"])
    steps = [base**power for base in (2, 10) for power in range(1, 13)]
    news = {known[place % len(known)] + step for place, step in enumerate(steps)} | {max(known) + 1}
    for number in [*known[:-5:-1], *known[::-4], *known[:4], *sorted(news - {*known})]:
        yield number, known


def _large_ids(variant: Variant) -> Iterator[tuple[int, list[int]]]:
    """Yield pairs of a large message id and a table, which has the same id or similar ones, such as `large` + 1."""
    large = variant["large"]
    for number in (large, *numbers_alike(large)):
        yield number, [3, large, 7]
    for one, other in SAME_DIGITS:
        yield one, [other]
    yield large, [large // 10, int(f"{large}1"), large + 1]


def _long_table(variant: Variant) -> Iterator[tuple[int, list[int]]]:
    """Yield pairs of a message id and a long table of known ids, in which the message's id may be missing.

    The table has the whole numbers from `first` + `size` down to `first` + 1. The messages have the ids at the table's
    indexes `places`, and the new ids `fresh`. All these names are parameters of the variant.
    """
    first, size = variant["first"], variant["size"]
    table = [*range(first + size, first, -1)]
    for number in (*(table[place] for place in variant["places"]), *dict(variant.parameters).get("fresh", ())):
        yield number, table


def _wrong_steps(ask: Asker, case: tuple[int, list[int]]) -> Finding | None:
    number, table = case
    question = number, list[Plain](table), list[Plain]()
    steps = a_list(ask, ask(*question), "steps")
    outputs = sum(step in ("output", "output and note") for step in steps)
    if number not in table:
        if outputs == 1:
            return None
        place, right = "the id is new", "a new message is output once"
    else:
        if outputs == 0 and "acknowledge" in steps:
            return None
        place = f"the id is number {table.index(number) + 1} of {len(table)} in the table"
        right = "a known message is acknowledged and not output again"
    statement = f"receive({number}, ...) answered {shown(steps)}"
    general = "With many or with large ids in the table, a known or a new message is treated wrongly."
    return Finding(False, f"{statement}, but {place}: {right}.", statement, right, general=general)


SINGLE = {
    name: Cases("receive", cases, _wrong_steps, "It is right about {} messages that come one by one").judge
    for name, cases in (("known", _single_messages), ("large", _large_ids), ("size", _long_table))
}
"""The judges of single messages, by the parameter of a variant that asks for them."""
MOST = 30_000
"""The largest number of ids in the table, as the task says."""
CHAIN = Settings(
    "chain_settings",
    "delivery",
    {"retry": (True, False), "dedup": ("none", "connection", "volatile", "durable"), "ids": ("derived", "fresh")},
    ("no_loss", "no_duplicate", "ends"),
    lambda chosen: {"productions": "weak", **chosen},
)
PREDICTION = Prediction(
    "predicted_02",
    lambda: replay("delivery.second_of_four"),
    {"executions": lambda walk: walk.facts["executions"], "effects": lambda walk: walk.verdict.rows},
)

JUDGES = {
    "02-predict": by(PREDICTION.judge, variant("delivery.second_of_four")),
    "02-dedup": by(
        by_parameter(Drill("receive", "deduplication_drill").judge, **SINGLE),
        variant("one record, a loss, a crash", records=1, duplicates=0),
        variant("two records, doubled", records=2, drops=0, duplicates=1, crashes=1),
        variant("two under way", records=2, window=2, duplicates=0, crashes=0),
        variant("many ids in the table", known=(*range(3, 12), 2, 1, 0, *range(12, 140))),
        variant("large ids", large=987_654_321_012_345_678),
        variant("a very long table", first=0, size=5_050, places=(0, 2_525, -1)),
        # A Bloom filter takes some new ids for known ones.
        variant(
            "the longest table",
            first=0,
            size=MOST,
            places=(0,),
            fresh=(6_417_925_426_618_434_982, 31_415_926_535_897_932, 271_828_182_845_904_523, 1_414_213_562_373_095),
        ),
    ),
    "02-chain": by(CHAIN.judge, variant("three processes, a crash, a loss", processes=3, records=1, duplicates=0)),
}
