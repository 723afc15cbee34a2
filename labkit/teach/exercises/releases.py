"""The exercise of notebook 12b: the review of a release that starts from the checkpoint of the version before it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import ask_each

Version = Mapping[str, Any]
"""A version of a query, by the keys that the task explains: `sources`, `filter`, `keys`, `values`, `settings`,
`checkpoint`, `table`.
"""
Case = tuple[Mapping[str, Any], str, bool]
"""What a pull request changes in a version, the sink, and whether the newest batch is unfinished."""
KEYS, BATCHES, NOTHING = SINKS = ("keys", "batches", "nothing")
"""How a sink recognises what it has already: by the keys of rows, by the numbers of batches, or not at all."""
RIGHT, REFUSED, WRONG, IGNORED = STARTS = ("right", "refused", "wrong", "ignored")
EMPTY = "an empty folder"
"""The checkpoint or the table of a version that begins anew."""


class Start(NamedTuple):
    """What happens when a version starts: one of `STARTS`, and the reason."""

    start: str
    why: str


def start_of(old: Version, new: Version, sink: str, *, unfinished: bool) -> Start:
    """Return what happens when Spark 4.2 starts `new` after `old` was stopped, as the runs of notebook 12b showed it.

    `sink` is one of `SINKS`. `unfinished` tells whether the newest planned batch of the old version lacks its commit.
    """
    is_empty = new["checkpoint"] != old["checkpoint"]
    faults = _left_behind(old, new, sink) if is_empty else _faults(old, new, sink, unfinished=unfinished)
    return next(faults, Start(RIGHT, "every batch, the state and the table follow one rule"))


def _faults(old: Version, new: Version, sink: str, *, unfinished: bool) -> Iterator[Start]:
    """Yield what is wrong if `new` starts from the checkpoint of `old`, the worst first."""
    if refusal := _refusal(old, new):
        yield Start(REFUSED, refusal)
    if new["table"] != old["table"]:
        yield Start(WRONG, "the new table never gets the rows of the batches that the checkpoint counts as finished")
    if [name for name, _ in new["keys"]] != [name for name, _ in old["keys"]]:
        yield Start(WRONG, "the state is kept by another key of the same type")
    if [value[0] for value in new["values"]] != [value[0] for value in old["values"]]:
        yield Start(WRONG, "the new version takes the old values in the state for its own, since the types fit")
    if old["filter"] != new["filter"] and old["values"]:
        yield Start(WRONG, "the state holds orders by the old filter, and the new filter adds to it")
    if old["filter"] != new["filter"] and unfinished and sink != BATCHES:
        yield Start(WRONG, "the unfinished batch has rows by both filters")
    if new["settings"] != old["settings"]:
        yield Start(IGNORED, "the checkpoint remembers the settings, and its values win")


def _left_behind(old: Version, new: Version, sink: str) -> Iterator[Start]:
    """Yield what is wrong if `new` starts from an empty checkpoint, and so reads all orders again."""
    if new["table"] != old["table"]:
        return
    if sink == NOTHING:
        yield Start(WRONG, "all orders are read again, and the table has their rows already")
    if sink == BATCHES:
        yield Start(WRONG, "the batches are counted anew, and the table skips the numbers that it has")
    if old["filter"] != new["filter"] or new["keys"] != old["keys"]:
        yield Start(WRONG, "rows that the new version never writes stay in the table")


def _refusal(old: Version, new: Version) -> str:
    """Return why Spark does not start `new` from the checkpoint of `old`, or an empty text if it does."""
    if new["sources"] != old["sources"]:
        return "the checkpoint has the offsets of another number of sources"
    if bool(new["values"]) != bool(old["values"]):
        return "only one of the two versions has state"
    if [kind for _, kind in new["keys"]] != [kind for _, kind in old["keys"]]:
        return "the number or the types of the key's columns differ from those in the state"
    if [kind for _, kind, _ in new["values"]] != [kind for _, kind, _ in old["values"]]:
        return "the number or the types of the values differ from those in the state"
    if any(now and not before for (_, _, before), (_, _, now) in zip(old["values"], new["values"], strict=True)):
        return "a value may be null, and its place in the state may not"
    return ""


def right_review(old: Version, new: Version, sink: str, *, unfinished: bool) -> tuple[str, str, str]:
    """Return what happens when `new` starts, the first remedy that makes its start right, and why it starts so."""
    start, why = start_of(old, new, sink, unfinished=unfinished)
    begun = {**new, "checkpoint": EMPTY}
    remedies = (
        ("deploy", new, unfinished),
        ("drain", new, False),
        ("new checkpoint", begun, unfinished),
        ("backfill", {**begun, "table": EMPTY}, unfinished),
    )
    for todo, version, still in remedies:
        if start_of(old, version, sink, unfinished=still).start == RIGHT:
            return start, todo, why
    raise AssertionError("an empty checkpoint and an empty table are always right")


def judge_review(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's function `review`, which reviews pull requests.

    The variant has the `old` version, and `cases`, one for each pull request: what it changes in the old version, the
    sink, and whether the newest batch is unfinished.
    """
    ask, old = Asker(answer, "review"), variant["old"]
    cases = ask.announced(variant["cases"], lambda case: _arguments(old, case))
    return ask_each(ask, cases, lambda case: _wrong(ask, old, case), "It is right about {} releases")


def _arguments(old: Version, case: Case) -> tuple[Plain, ...]:
    changes, sink, unfinished = case
    return _described(old), _described({**old, **changes}), sink, unfinished


def _wrong(ask: Asker, old: Version, case: Case) -> Finding | None:
    changes, sink, unfinished = case
    arguments = _arguments(old, case)
    answer = ask(*arguments)
    start, todo, why = right_review(old, {**old, **changes}, sink, unfinished=unfinished)
    if type(answer) is not list or len(answer) != 2 or any(type(part) is not str for part in answer):
        raise Unusable(f"{ask.call(*arguments)} returned {shown(answer)}; return two texts, [start, todo].")
    if answer == [start, todo]:
        return None
    about = ", ".join(changes) or "nothing"
    batch = "unfinished" if unfinished else "finished"
    release = f"Changed: {about}; the sink recognises {sink}; the newest batch is {batch}"
    message = f"{release}. The answer is {shown(answer)}. It is {shown([start, todo])}: {why}."
    general = f"A release is judged wrongly. The start is {start}: {why}."
    return Finding(False, message, f"{release}: {shown(answer)}", shown([start, todo]), general=general)


def _described(version: Version) -> dict[str, Plain]:
    """Return a version as plain lists and dicts, as a learner's function gets it."""
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
TWO = (("item", "string"), ("city", "string"))
COUNT = ("count(1)", "bigint", False)

JUDGES = {
    "12b-review": by(
        judge_review,
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
                ({}, NOTHING, True),
            ),
        ),
        variant(
            "another checkpoint, another table",
            old=COPY,
            cases=(
                *(({"checkpoint": "copy-2"}, sink, False) for sink in SINKS),
                *(({"table": "orders-2"}, sink, False) for sink in SINKS),
                *(({"checkpoint": "copy-2", "table": "orders-2"}, sink, False) for sink in SINKS),
                ({"checkpoint": "copy-2", "filter": "amount >= 10"}, KEYS, False),
            ),
        ),
        variant(
            "a sum after a count",
            old={**SUMS, "values": (COUNT,)},
            cases=(({"values": SUMS["values"]}, KEYS, False), ({"values": (COUNT, COUNT)}, KEYS, False)),
        ),
        variant(
            "several columns",
            old={**SUMS, "keys": TWO, "values": (*SUMS["values"], COUNT)},
            cases=(
                ({"checkpoint": "sums-2", "table": "sums-2", "values": (COUNT,)}, NOTHING, False),
                ({"keys": TWO[::-1]}, BATCHES, False),
                ({"keys": (*TWO, ("amount", "bigint")), "values": (COUNT,)}, KEYS, False),
            ),
        ),
    )
}
