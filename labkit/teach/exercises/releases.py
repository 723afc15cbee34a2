"""The exercise of notebook 12b: the review of a release that starts from the checkpoint of the version before it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from labkit.teach.exercises.asking import Asker, shown
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import Cases

Version = Mapping[str, Any]
"""A version of a Spark query as a dict, whose keys the task explains: `sources`, `filter`, `keys`, `values`,
`settings`, `checkpoint`, `table`.
"""
Changes = Mapping[str, Any]
"""The parts of a version that a pull request changes, with their new values."""
Case = tuple[Changes, str, bool]
"""One pull request to review: its changes, the sink, and whether the newest batch is unfinished."""
Review = tuple[Version, Changes, str, bool]
"""The present version of a query, and a pull request for it."""
KEYS, BATCHES, NOTHING = SINKS = ("keys", "batches", "nothing")
"""How a sink recognises rows that it has stored already: by their keys, by the batch number, or not at all."""
RIGHT, REFUSED, WRONG, IGNORED = STARTS = ("right", "refused", "wrong", "ignored")
EMPTY = "an empty folder"
"""The checkpoint or the table of a version that begins anew."""


class Start(NamedTuple):
    """What happens when a query's new version starts: one of `STARTS`, such as a refusal, and the reason."""

    start: str
    why: str


def start_of(old: Version, new: Version, sink: str, *, unfinished: bool) -> Start:
    """Return what happens when a query's version `new` starts after its version `old`.

    Notebook 12b measured this with Spark 4.2. `sink` is one of `SINKS`. `unfinished` is true if the old version has
    planned its newest batch, but not committed it.
    """
    is_empty = new["checkpoint"] != old["checkpoint"]
    faults = _left_behind(old, new, sink) if is_empty else _faults(old, new, sink, unfinished=unfinished)
    return next(faults, Start(RIGHT, "every batch, the state and the table follow one rule"))


def _faults(old: Version, new: Version, sink: str, *, unfinished: bool) -> Iterator[Start]:
    """Yield each fault that appears if `new` starts from the checkpoint of `old`, the worst first.

    The arguments are those of `start_of`.
    """
    if refusal := _refusal(old, new):
        yield Start(REFUSED, refusal)
    # A total is one row, which each batch replaces: the batch that runs again writes all of it into the new table.
    if new["table"] != old["table"] and not (unfinished and sink == KEYS and _is_total(new)):
        yield Start(WRONG, "the new table never gets the rows of the batches that the checkpoint counts as finished")
    if [name for name, _ in new["keys"]] != [name for name, _ in old["keys"]]:
        yield Start(WRONG, "the state is kept by another key of the same type")
    if [value[0] for value in new["values"]] != [value[0] for value in old["values"]]:
        yield Start(WRONG, "the types fit, so the new version uses the old values in the state as if they were its own")
    if old["filter"] != new["filter"] and _has_state(old):
        yield Start(WRONG, "the state holds orders by the old filter, and the new filter adds to it")
    if unfinished and sink == NOTHING:
        yield Start(WRONG, "the unfinished batch runs again, and the table may have rows of it already")
    if old["filter"] != new["filter"] and unfinished and sink == KEYS:
        yield Start(WRONG, "the unfinished batch has rows by both filters")
    if new["settings"] != old["settings"]:
        yield Start(IGNORED, "the checkpoint remembers the settings, and its values win")


def _left_behind(old: Version, new: Version, sink: str) -> Iterator[Start]:
    """Yield each fault that appears if `new` starts from an empty checkpoint and therefore reads all orders again."""
    if new["table"] != old["table"]:
        return
    if sink == NOTHING:
        yield Start(WRONG, "all orders are read again, and the table has their rows already")
    if sink == BATCHES:
        yield Start(WRONG, "batch numbers begin at 0 again, and the sink skips the numbers that the table has already")
    if _rows_by(old) != _rows_by(new):
        yield Start(WRONG, "the rows have other keys now, so rows that the new version never writes stay in the table")
    if _is_total(new):
        return  # its one row is replaced, whatever was in it
    if old["filter"] != new["filter"]:
        yield Start(WRONG, "rows of orders that the new filter leaves out stay in the table")
    if new["sources"] < old["sources"]:
        yield Start(WRONG, "rows of the source that is no longer read stay in the table")


def _has_state(version: Version) -> bool:
    return bool(version["keys"] or version["values"])


def _is_total(version: Version) -> bool:
    # Without keys, the query aggregates all orders into one row.
    return bool(version["values"]) and not version["keys"]


def _rows_by(version: Version) -> tuple[bool, Any]:
    # A version without state writes its rows by the number of the order.
    return _has_state(version), version["keys"]


def _refusal(old: Version, new: Version) -> str:
    """Return why Spark does not start `new` from the checkpoint of `old`; the text is empty if Spark does start it."""
    if new["sources"] != old["sources"]:
        return "the checkpoint has offsets for more or fewer sources"
    for part, named in ((_has_state, "state"), (lambda version: bool(version["values"]), "values in its state")):
        if part(new) != part(old):
            return f"only one of the two versions has {named}"
    if [kind for _, kind in new["keys"]] != [kind for _, kind in old["keys"]]:
        return "the number or the types of the key's columns differ from those in the state"
    if [kind for _, kind, _ in new["values"]] != [kind for _, kind, _ in old["values"]]:
        return "the number or the types of the values differ from those in the state"
    if any(now and not before for (_, _, before), (_, _, now) in zip(old["values"], new["values"], strict=True)):
        return "a value may be null now, but its column in the state may not"
    return ""


def right_review(old: Version, new: Version, sink: str, *, unfinished: bool) -> tuple[str, str, str]:
    """Return what happens when `new` starts after `old`, the mildest remedy, and the reason for both, as texts."""
    start, why = start_of(old, new, sink, unfinished=unfinished)
    begun = {**new, "checkpoint": EMPTY}
    remedies = (
        ("deploy", new, unfinished),
        # The old version runs the whole batch again, so a sink that only appends has some of its rows twice.
        ("drain", new, unfinished and sink == NOTHING),
        ("new checkpoint", begun, unfinished),
        ("backfill", {**begun, "table": EMPTY}, unfinished),
    )
    for todo, version, still in remedies:
        then = start_of(old, version, sink, unfinished=still)
        if then.start == RIGHT:
            return start, todo, why
        if todo == "new checkpoint" and then.why != why:
            why = f"{why}; and with a new checkpoint {then.why}"
    raise AssertionError("every remedy failed, even an empty checkpoint with an empty table, which always should work")


def _cases(variant: Variant) -> Iterator[Review]:
    return ((variant["old"], *case) for case in variant["cases"])


def _arguments(case: Review) -> tuple[dict[str, Plain], dict[str, Plain], str, bool]:
    old, changes, sink, unfinished = case
    return _described(old), _described({**old, **changes}), sink, unfinished


def _wrong(ask: Asker, case: Review) -> Finding | None:
    old, changes, sink, unfinished = case
    arguments = _arguments(case)
    answer = ask(*arguments)
    start, todo, why = right_review(old, {**old, **changes}, sink, unfinished=unfinished)
    if type(answer) is not list or len(answer) != 2 or any(type(part) is not str for part in answer):
        raise ask.unusable("two texts, [start, todo]", *arguments)
    if answer == [start, todo]:
        return None
    # A line of Python that repeats the call. To be short, it writes `new` as `old` with the changed parts.
    before, after, *_ = arguments
    changed = f"old | { ({part: after[part] for part in changes})!r}" if changes else "dict(old)"
    call = f"old = {before!r}; new = {changed}; review(old, new, {sink!r}, {unfinished})"
    statement = f"{call} answered {shown(answer)}"
    message = f"{statement}. The right answer is {shown([start, todo])}: {why}."
    general = f"The review of a release is wrong. The start is {start}: {why}."
    return Finding(False, message, statement, shown([start, todo]), general=general)


def _described(version: Version) -> dict[str, Plain]:
    lists = {name: [list(each) for each in version[name]] for name in ("keys", "values")}
    return {**version, **lists, "settings": dict(version["settings"])}


SETTINGS = {"shuffle partitions": 2, "state store": "HDFS"}
SUMS: Version = {
    "sources": 1,
    "filter": "amount >= 1",
    "keys": (("item", "string"),),
    "values": (("sum(amount)", "bigint", True),),
    "settings": SETTINGS,
    "checkpoint": "sums-1",
    "table": "sums",
}
"""The query of the notebook that sums amounts by item."""
COPY: Version = {**SUMS, "keys": (), "values": (), "checkpoint": "copy-1", "table": "orders"}
"""The query of the notebook that copies orders."""
COUNT = ("count(1)", "bigint", False)


def queries(
    names: Sequence[str], numbers: Sequence[str], functions: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any], list[Changes]]]:
    """Yield for each kind of query its name, its `keys` and `values`, and a list of changes to its `keys` or `values`.

    `keys` are the columns by which the query groups rows, and `values` are the aggregates that it computes. `names` are
    the names of three text columns, `numbers` those of three columns of whole numbers, and `functions` are three
    aggregate functions, one for each column in `numbers`.
    """
    key, other, third = ((name, "string") for name in names)
    number = (numbers[0], "bigint")
    one, two, three = (
        (f"{function}({each})", "bigint", True) for function, each in zip(functions, numbers, strict=True)
    )
    double, cities = (one[0], "double", True), (f"count({names[1]})", "bigint", False)
    plain: dict[str, Any] = {"keys": (), "values": ()}
    keyed: list[Changes] = [plain, *changes_to("keys", (third,), ((key[0], "int"),), (number,), (key, third), ())]
    added = [*changes_to("values", (one,)), *({"keys": (key,), "values": values} for values in ((one,), (COUNT,), ()))]
    yield "no state", plain, added
    yield (
        "a total of all",
        {**plain, "values": (one,)},
        [plain, *changes_to("values", (COUNT,), (two,)), {"keys": (key,)}, {"keys": (key,), "values": ()}],
    )
    yield (
        "one value",
        {"keys": (key,), "values": (one,)},
        [*keyed, *changes_to("values", (COUNT,), (two,), (double,), (one, COUNT), (double, COUNT), ())],
    )
    yield (
        "a count",
        {"keys": (key,), "values": (COUNT,)},
        [*keyed, *changes_to("values", (one,), (cities,), (COUNT, one))],
    )
    yield (
        "no duplicates",
        {"keys": (key,), "values": ()},
        [*keyed, *changes_to("values", (one,), (COUNT,)), {"keys": (), "values": (one,)}],
    )
    yield (
        "two keys, and a sum and a count",
        {"keys": (key, other), "values": (two, COUNT)},
        [
            plain,
            *changes_to(
                "keys", (other, key), (key, third), (third, other), (key,), (key, number), (key, other, third), ()
            ),
            *changes_to("values", (COUNT, two), (two,), (COUNT, cities), (three, COUNT), (two, cities)),
            *changes_to("values", (two, (COUNT[0], "int", False)), ()),
            # All columns together keep their number and types; one moves from the values to the key.
            {"keys": (key, other, number), "values": (COUNT,)},
        ],
    )
    yield (
        "keys of two types, and two values of one type",
        {"keys": (key, number), "values": (one, two)},
        [
            *changes_to("keys", (number, key), (third, number)),
            *changes_to("values", (two, one), (one, three), (three, one)),
        ],
    )
    yield (
        "values of two types",
        {"keys": (key,), "values": (two, double)},
        [*keyed, *changes_to("values", (double, two), (three, double))],
    )
    yield "two keys alone", {"keys": (key, other), "values": ()}, changes_to("keys", (other, key), (key, third), (key,))


def places(low: int, sources: int, settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[Changes]]:
    """Return a dict with the parts of a query's version except `keys` and `values`, and a list of changes to them.

    `low` is the number in the filter (as in `amount >= 1`) and in the names of checkpoint and table. `sources` is the
    number of sources that the query reads.
    """
    checkpoint, table = f"checkpoint-{low + 1}", f"table-{low + 1}"
    old = {"sources": sources, "filter": f"amount >= {low}", "settings": dict(settings)}
    old |= {"checkpoint": f"checkpoint-{low}", "table": f"table-{low}"}
    return old, [
        {},
        *changes_to("filter", f"amount >= {low + 1}", f"amount > {low}"),
        *changes_to("sources", sources - 1, sources + 1, 12),
        *changes_to("settings", {**settings, "shuffle partitions": 5}, {**settings, "state store": "RocksDB"}),
        *changes_to("checkpoint", checkpoint),
        *changes_to("table", table),
        {"checkpoint": checkpoint, "table": table},
        {"checkpoint": checkpoint, "filter": f"amount > {low}"},
    ]


MOST_SOURCES, MOST_COLUMNS, LONGEST_TEXT = 200, 20, 100
"""The largest numbers of sources, of key columns (or values, or settings), and of characters, as the task says."""


def many_columns(parts: Version, low: int) -> Variant:
    """Return a test configuration whose old version has as many sources, columns and settings as the task allows.

    `parts` has the other parts of this version. In one of the pull requests, the new version reads only `low` sources.
    """
    keys = tuple((f"column {number}", "string") for number in range(MOST_COLUMNS))
    values = tuple((f"sum(amount {number})", "bigint", number not in (0, 9, 11)) for number in range(MOST_COLUMNS))
    first = (("count(1)", "bigint", False), ("sum(amount)", "bigint", True), ("count(1)", "int", False))
    last = (("max(amount)", "bigint", True), ("sum(price)", "double", True))
    names = (("column", "string"), ("column", "int"))
    changes: list[Changes] = [
        {},
        *changes_to("sources", low, 2, MOST_SOURCES - 1),
        *changes_to("keys", *((new, *keys[1:]) for new in names), *((*keys[:-1], new) for new in names), keys[:-1]),
        *changes_to("values", *((new, *values[1:]) for new in first), *((*values[:-1], new) for new in last)),
        *changes_to("values", *((*values[:at], ("max(amount)", "bigint", True), *values[at + 1 :]) for at in (9, 11))),
        *changes_to("values", (*values[:16], ("sum(amount 16)", "double", True), *values[17:]), values[:-1]),
    ]
    settings = {**parts["settings"]}
    settings |= {f"setting {number}": 200 for number in range(MOST_COLUMNS - len(settings))}
    others = changes_to("settings", *({**settings, name: 5} for name in settings))
    old = {**parts, "sources": MOST_SOURCES, "keys": keys, "values": values, "settings": settings}
    cases = [*with_every_sink(changes), *((change, KEYS, False) for change in others)]
    return variant("many columns", old=old, cases=tuple(cases))


def longest_texts(parts: Version, letters: str) -> Iterator[Variant]:
    """Yield test configurations in which old and new texts have the greatest length and differ in one character.

    The texts repeat `letters`. The different character is the last, the first, or the one in the middle.
    """
    text = (letters * LONGEST_TEXT)[:LONGEST_TEXT]
    middle = LONGEST_TEXT // 2
    one, *others = text, f"{text[:-1]}.", f".{text[1:]}", f"{text[:middle]}.{text[middle + 1 :]}"
    rest = {**parts, "filter": one, "checkpoint": one, "table": one}
    changes: list[Changes] = [{}, *({part: other} for part in ("filter", "checkpoint", "table") for other in others)]
    cases = tuple((change, KEYS, late) for change in changes for late in (False, True))
    yield variant("the longest texts", old={**rest, "keys": (), "values": ()}, cases=cases)
    columns: list[Changes] = [
        *changes_to("filter", *others),
        *changes_to("keys", *(((other, one),) for other in others), *(((one, other),) for other in others)),
        *changes_to(
            "values", *(((other, one, True),) for other in others), *(((one, other, True),) for other in others)
        ),
    ]
    state = {"keys": ((one, one),), "values": ((one, one, True),)}
    cases = tuple((change, KEYS, False) for change in columns)
    yield variant("the longest texts in the state", old={**rest, **state}, cases=cases)


def changes_to(part: str, *values: object) -> list[Changes]:
    """Return one change for each of `values`: it sets `part` of a query's version, such as `filter`, to this value."""
    return [{part: value} for value in values]


def common_cases(changes: Sequence[Changes], own: Sequence[Changes]) -> list[Case]:
    """Return the test cases for one kind of query: its single changes, and some pairs of changes, with every sink.

    `own` are the changes to the query's keys and values. `changes` are those to other parts of its version, such as the
    filter; `places` returns them.
    """
    first = {part: change for change in reversed(changes) for part in change if len(change) == 1}
    pairs = [{**one, **other} for one, other in combinations(first.values(), 2)]
    begun = [{**change, **own[0]} for change in changes if "checkpoint" in change]
    return with_every_sink([*changes, *own, *pairs, *begun])


def with_every_sink(changes: Iterable[Changes]) -> list[Case]:
    """Return one test case for every combination of a change, a sink, and whether the newest batch is unfinished."""
    return [(change, sink, unfinished) for change in changes for sink in SINKS for unfinished in (False, True)]


def _public() -> Iterator[Variant]:
    """Yield the test configurations that learners may see: one for each kind of query, and some of the largest size."""
    old, changes = places(1, 2, SETTINGS)
    for name, state, own in queries(("item", "city", "day"), ("amount", "weight", "price"), ("sum", "max", "min")):
        yield variant(name, old={**old, **state}, cases=tuple(common_cases(changes, own)))
    yield many_columns(old, 12)
    yield from longest_texts(old, "amount >= 1 and ")


REVIEW = Cases("review", _cases, _wrong, "It is right about {} releases", _arguments)
JUDGES = {
    "12b-review": by(
        REVIEW.judge,
        variant(
            "the sum by item",
            old=SUMS,
            cases=(
                ({}, KEYS, False),
                ({"settings": {**SETTINGS, "state store": "RocksDB"}}, NOTHING, False),
                ({"filter": "amount >= 5"}, KEYS, False),
                ({"filter": "amount >= 5"}, BATCHES, True),
                ({"values": (("max(amount)", "bigint", True),)}, KEYS, False),
                ({"values": (COUNT,)}, KEYS, True),
                ({"values": (("sum(amount)", "double", True), COUNT)}, KEYS, False),
                ({"keys": (("city", "string"),)}, KEYS, False),
                ({"keys": (("amount", "bigint"),)}, NOTHING, False),
                ({"keys": (), "values": ()}, KEYS, False),
                ({"settings": {**SETTINGS, "shuffle partitions": 5}}, KEYS, False),
                ({"sources": 2}, BATCHES, False),
            ),
        ),
        variant(
            "a copy of the orders",
            old=COPY,
            cases=(
                *(({"filter": "amount >= 10"}, sink, late) for sink in reversed(SINKS) for late in (False, True)),
                ({"sources": 2}, KEYS, False),
                ({"keys": SUMS["keys"], "values": SUMS["values"]}, KEYS, False),
                ({}, NOTHING, False),
                ({}, KEYS, True),
                ({}, NOTHING, True),
            ),
        ),
        *_public(),
    )
}
