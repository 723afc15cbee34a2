"""The review of a release, held against real Spark: whether a version starts from the checkpoint of another one."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from labkit.teach.exercises.contract import Variant
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import find
from labkit.teach.exercises.releases import (
    BATCHES,
    COUNT,
    IGNORED,
    KEYS,
    REFUSED,
    REVIEW,
    RIGHT,
    SINKS,
    STARTS,
    SUMS,
    WRONG,
    Version,
    right_review,
    start_of,
)

TODOS = ("deploy", "drain", "new checkpoint", "backfill")
ITEM, CITY, DAY, AMOUNT = ("item", "string"), ("city", "string"), ("day", "int"), ("amount", "bigint")
SUM, MAX, PRICES = ("sum(amount)", "bigint", True), ("max(amount)", "bigint", True), ("sum(price)", "double", True)
CITIES = ("count(city)", "bigint", False)
TENTHS, CENTS = ((f"max(cast(price as decimal(10,{n})))", f"decimal(10,{n})", True) for n in (1, 2))
PAIR, OTHER_PAIR = (
    (f"named_struct('a', {name}, 'b', amount)", f"struct<a:{kind},b:bigint>") for name, kind in (DAY, ITEM)
)
PLAIN: dict[str, Any] = {"keys": (), "values": ()}
DISTINCT: dict[str, Any] = {"keys": (ITEM,), "values": ()}
"""`dropDuplicates("item")`: state with keys alone."""
TOTAL: dict[str, Any] = {"keys": ()}
FILTER: dict[str, Any] = {"filter": "amount >= 5"}
PARTITIONS: dict[str, Any] = {"settings": {"shuffle partitions": 3, "state store": "HDFS"}}
MOVED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("no change", {}, {}),
    ("no change, no state", PLAIN, {}),
    ("no change, no duplicates", DISTINCT, {}),
    ("no change, a total", TOTAL, {}),
    ("max", {}, {"values": (MAX,)}),
    ("count", {}, {"values": (COUNT,)}),
    ("double", {}, {"values": (PRICES,)}),
    ("another scale", {"values": (TENTHS,)}, {"values": (CENTS,)}),
    ("by city", {}, {"keys": (CITY,)}),
    ("by day", {}, {"keys": (DAY,)}),
    ("a struct with another field", {"keys": (PAIR,)}, {"keys": (OTHER_PAIR,)}),
    ("one more key", {}, {"keys": (ITEM, CITY)}),
    ("one more value", {}, {"values": (SUM, COUNT)}),
    ("one value less", {"values": (SUM, COUNT)}, {"values": (SUM,)}),
    ("no aggregation", {}, PLAIN),
    ("an aggregation", PLAIN, {"keys": (ITEM,), "values": (SUM,)}),
    ("no total", TOTAL, PLAIN),
    ("a total", PLAIN, {"values": (SUM,)}),
    ("sum after count", {"values": (COUNT,)}, {"values": (SUM,)}),
    ("another count", {"values": (COUNT,)}, {"values": (CITIES,)}),
    ("keys in another order", {"keys": (ITEM, CITY)}, {"keys": (CITY, ITEM)}),
    ("keys of two types in another order", {"keys": (ITEM, AMOUNT)}, {"keys": (AMOUNT, ITEM)}),
    ("values in another order", {"values": (SUM, MAX)}, {"values": (MAX, SUM)}),
    ("values of two types in another order", {"values": (SUM, PRICES)}, {"values": (PRICES, SUM)}),
    ("a sum and a count in another order", {"values": (SUM, COUNT)}, {"values": (COUNT, SUM)}),
    ("two counts", {"values": (SUM, COUNT)}, {"values": (CITIES, COUNT)}),
    ("from values to keys", {"keys": (ITEM,), "values": (SUM, COUNT)}, {"keys": (ITEM, AMOUNT), "values": (COUNT,)}),
    ("another total of all", TOTAL, {"values": (MAX,)}),
    ("groups for a total of all", TOTAL, {"keys": (ITEM,)}),
    ("a total of all for groups", {}, TOTAL),
    ("no duplicates for a total of all", TOTAL, DISTINCT),
    ("a total of all for no duplicates", DISTINCT, {"keys": (), "values": (SUM,)}),
    ("a source less and a filter, new checkpoint", {"sources": 2}, {"sources": 1, **FILTER, "checkpoint": "other"}),
    ("a source less and another table, a total", {**TOTAL, "sources": 2}, {"sources": 1, "table": "other"}),
    ("no duplicates by city", DISTINCT, {"keys": (CITY,)}),
    ("no duplicates by day", DISTINCT, {"keys": (DAY,)}),
    ("no duplicates, in another order", {"keys": (ITEM, CITY), "values": ()}, {"keys": (CITY, ITEM)}),
    ("a sum for no duplicates", DISTINCT, {"values": (SUM,)}),
    ("no duplicates for a sum", {}, DISTINCT),
    ("no duplicates after no state", PLAIN, DISTINCT),
    ("no state after no duplicates", DISTINCT, PLAIN),
    ("a filter, state", {}, FILTER),
    ("a filter, no state", PLAIN, FILTER),
    ("a filter, no duplicates", DISTINCT, FILTER),
    ("a filter, a total", TOTAL, FILTER),
    *((f"two sources, {name}", old, {"sources": 2}) for name, old in (("state", {}), ("no state", PLAIN))),
    *(
        (f"one source, {name}", {**old, "sources": 2}, {"sources": 1})
        for name, old in (("state", {}), ("no state", PLAIN), ("no duplicates", DISTINCT), ("a total", TOTAL))
    ),
    ("a setting", {}, PARTITIONS),
    ("a setting, no state", PLAIN, PARTITIONS),
    ("another store", {}, {"settings": {"shuffle partitions": 2, "state store": "RocksDB"}}),
    ("a setting and a filter, no state", PLAIN, {**PARTITIONS, **FILTER}),
    *(
        (f"{name}, {', '.join(places)}", old, {**places, **more})
        for places in ({"checkpoint": "other"}, {"table": "other"}, {"checkpoint": "other", "table": "other"})
        for name, old, more in (("state", {}, {}), ("no state", PLAIN, {}), ("no state, a filter", PLAIN, FILTER))
    ),
    ("another total, another table", TOTAL, {"values": (MAX,), "table": "other"}),
    ("a setting and another table, a total", TOTAL, {**PARTITIONS, "table": "other"}),
    ("another table, a total", TOTAL, {"table": "other"}),
]
"""For each release its name, and how the old and the new version differ from `SUMS`."""
PROGRAM = Path(__file__).with_name("releases_on_spark.py")
Batches = Sequence[tuple[int, Sequence[tuple[str, str]]]]
"""Batches as the program prints them: the number, and each row with its key."""


def versions(old: dict[str, Any], new: dict[str, Any]) -> tuple[Version, Version]:
    before = {**SUMS, **old}
    return before, {**before, **new}


def digest(version: Version) -> Version:
    """Return a version without what the program on Spark does not need, so that it runs equal ones once."""
    return {**version, "checkpoint": "", "table": ""}


def written(batches: Batches, sink: str, *, into: Batches = ()) -> dict[str, str] | list[str]:
    """Return the table after these batches, if it had those in `into` before: by key, or a sorted list of rows."""
    if sink == KEYS:
        return dict(row for _, rows in (*into, *batches) for row in rows)
    numbers = {number for number, _ in into} if sink == BATCHES else ()
    return sorted(
        row for number, rows in (*into, *(each for each in batches if each[0] not in numbers)) for _, row in rows
    )


def observed(
    run: dict[str, Any], befores: list[Batches], wanted: list[Batches], sink: str, *, table: bool = True
) -> str:
    """Return what a start was, by the table that a sink made of the run's batches.

    `befores` are the batches that the table may have had before, and `wanted` those whose table would be right. The
    sink writes to another, empty table if not `table`.
    """
    if run["error"]:
        return REFUSED
    right = [written(batches, sink) for batches in wanted]
    if any(written(run["batches"], sink, into=before if table else ()) not in right for before in befores):
        return WRONG
    return RIGHT if run["settings hold"] else IGNORED


def on_spark(old: Version, new: Version, runs: dict[str, Any], sink: str, *, unfinished: bool) -> tuple[str, str]:
    """Return how the release starts on real Spark and the first remedy that makes it right, as the exercise asks."""
    first, second = runs["old"]["finished"]["batches"]
    # An unfinished batch may have written any number of its rows; with its number it writes all or none.
    parts = [()] if sink == BATCHES else [second[1][:count] for count in range(len(second[1]))]
    partly = [[first, *([[1, part]] if part else [])] for part in parts] + [[first, second]]
    finished = [[first, second]]
    fresh, is_same = runs["anew"]["file by file"]["batches"], new["table"] == old["table"]
    # Perhaps no order comes after the stop: then a start after a finished batch writes nothing.
    is_empty = not is_same and written(runs["old"]["idle"]["batches"], sink) != written(fresh[:2], sink)
    wanted = [fresh]
    if not any((*old["keys"], *old["values"], *new["keys"], *new["values"])):
        # Without state, a filter may change between two batches.
        wanted = [[first, second, *fresh[2:]], *([[first, *fresh[1:]]] if unfinished else [])]

    def continued(name: str, before: list[Batches]) -> str:
        then = observed(runs["new"][name], before, wanted, sink, table=is_same)
        return WRONG if then != REFUSED and name == "finished" and is_empty else then

    def begun(*, table: bool) -> str:
        again = runs["anew"]["at once"]
        return observed(again, partly if unfinished else finished, [again["batches"]], sink, table=table)

    if new["checkpoint"] != old["checkpoint"]:
        start = drained = begun(table=is_same)
    elif unfinished:
        start = continued("unfinished", partly)
        # The old version runs the whole batch again, after what it had written.
        again = runs["old"]["drained"]["batches"]
        run = runs["new"]["drained"]
        tables = [written([*again, *run["batches"]], sink, into=before) for before in partly]
        assert [number for number, _ in again] == [1]
        right = [written(batches, sink) for batches in [[first, second, *fresh[2:]] if wanted != [fresh] else fresh]]
        drained = REFUSED if run["error"] else RIGHT if is_same and all(table in right for table in tables) else WRONG
        if drained == RIGHT and not run["settings hold"]:
            drained = IGNORED
    else:
        start = drained = continued("finished", finished)
    remedies = (
        ("deploy", start),
        ("drain", drained),
        ("new checkpoint", begun(table=is_same)),
        ("backfill", begun(table=False)),
    )
    return start, next(todo for todo, then in remedies if then == RIGHT)


@pytest.mark.variant
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "moved", [MOVED[::6], pytest.param(MOVED, marks=pytest.mark.variant)], ids=["a sixth", "every release"]
)
def test_spark_starts_a_release_as_the_review_says(moved: list[Any], tmp_path: Path) -> None:
    pairs = [versions(old, new) for _, old, new in moved]
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        input=json.dumps([[digest(old), digest(new)] for old, new in pairs]),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=3_000,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == len(moved)
    different, seen = {}, set()
    for (name, _, _), (old, new), runs in zip(moved, pairs, found, strict=True):
        assert not runs["old"]["finished"]["error"]
        assert runs["old"]["idle"] == {"batches": [], "error": "", "settings hold": True}
        assert runs["old"]["unfinished"]["error"]
        assert [number for number, _ in runs["old"]["unfinished"]["batches"]] == [0, 1]
        for sink in SINKS:
            for unfinished in (False, True):
                real = on_spark(old, new, runs, sink, unfinished=unfinished)
                said = right_review(old, new, sink, unfinished=unfinished)[:2]
                seen |= {*real}
                if real != said:
                    different[f"{name}, {sink}, unfinished: {unfinished}"] = f"Spark {real}, review {said}"
    assert not different, json.dumps(different, indent=1)
    assert seen == {*STARTS, *TODOS}


def test_an_empty_checkpoint_and_an_empty_table_repair_every_release() -> None:
    seen = set()
    for _, old, new in MOVED:
        for sink in SINKS:
            for unfinished in (False, True):
                before, after = versions(old, new)
                start, todo, _ = right_review(before, after, sink, unfinished=unfinished)
                assert (start == RIGHT) == (todo == "deploy")
                seen |= {start, todo}
                anew = {**after, "checkpoint": "another", "table": "another"}
                assert start_of(before, anew, sink, unfinished=unfinished).start == RIGHT
    filtered = {**SUMS, "keys": (), "values": ()}
    seen.add(right_review(filtered, {**filtered, "filter": "true"}, KEYS, unfinished=True)[1])
    assert seen == {*STARTS, *TODOS}


@pytest.mark.parametrize("given", [None, "deploy", ["right"], ["right", 1], [["right"], "deploy"]])
def test_another_form_gets_a_sentence(given: object) -> None:
    finding = REVIEW.judge(InNotebook("review", {"review": lambda *_: given}), find("12b-review").public[0])
    assert not finding.passed
    assert "return two texts" in finding.message


def test_a_function_that_changes_its_arguments_is_judged_by_what_it_answers() -> None:
    """The dicts are the learner's own: emptying them must not change the question."""

    def review(old, new, sink, unfinished):
        start, todo, _ = right_review(dict(old), dict(new), sink, unfinished=unfinished)
        new.clear()
        old["keys"].clear()
        return [start, todo]

    variant = Variant("few", (("old", SUMS), ("cases", tuple(({}, sink, True) for sink in SINKS))))
    assert REVIEW.judge(InNotebook("review", {"review": review}), variant).passed
