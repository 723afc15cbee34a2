"""The review of a release, held against real Spark: whether a version starts from the checkpoint of another one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labkit.teach.exercises.contract import Variant
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import find
from labkit.teach.exercises.releases import (
    COUNT,
    KEYS,
    REFUSED,
    RIGHT,
    SINKS,
    STARTS,
    SUMS,
    Version,
    judge_review,
    right_review,
    start_of,
)

TODOS = ("deploy", "drain", "new checkpoint", "backfill")
ITEM, CITY, DAY, AMOUNT = ("item", "string"), ("city", "string"), ("day", "int"), ("amount", "bigint")
SUM, MAX, PRICES = ("sum(amount)", "bigint", True), ("max(amount)", "bigint", True), ("sum(price)", "double", True)
CITIES = ("count(city)", "bigint", False)
MOVED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("no change", {}, {}),
    ("max", {}, {"values": (MAX,)}),
    ("count", {}, {"values": (COUNT,)}),
    ("double", {}, {"values": (PRICES,)}),
    ("by city", {}, {"keys": (CITY,)}),
    ("by day", {}, {"keys": (DAY,)}),
    ("one more key", {}, {"keys": (ITEM, CITY)}),
    ("one more value", {}, {"values": (SUM, COUNT)}),
    ("no aggregation", {}, {"keys": (), "values": ()}),
    ("an aggregation", {"keys": (), "values": ()}, {"keys": (ITEM,), "values": (SUM,)}),
    ("sum after count", {"values": (COUNT,)}, {"values": (SUM,)}),
    ("another count", {"values": (COUNT,)}, {"values": (CITIES,)}),
    ("keys in another order", {"keys": (ITEM, CITY)}, {"keys": (CITY, ITEM)}),
    ("values in another order", {"values": (SUM, COUNT)}, {"values": (COUNT, SUM)}),
    ("two counts", {"values": (SUM, COUNT)}, {"values": (CITIES, COUNT)}),
    ("from values to keys", {"keys": (ITEM,), "values": (SUM, COUNT)}, {"keys": (ITEM, AMOUNT), "values": (COUNT,)}),
    ("another total of all", {"keys": ()}, {"values": (MAX,)}),
    ("groups for a total of all", {"keys": ()}, {"keys": (ITEM,)}),
    ("two sources", {}, {"sources": 2}),
    ("one source", {"sources": 2}, {"sources": 1}),
    ("a setting", {}, {"settings": {"shuffle partitions": 3, "state store": "HDFS"}}),
]
"""For each release its name, and how the old and the new version differ from `SUMS`."""
PROGRAM = """
import json, shutil, sys
from pathlib import Path
from labkit import lab
from pyspark.errors import PySparkException
from pyspark.sql import functions

spark = lab.spark()
for name in ("0", "1"):
    Path(name).mkdir()
    Path(name, "a.csv").write_text("pen,Bonn,1,5,0.5\\n")

def run(version, checkpoint):
    spark.conf.set("spark.sql.shuffle.partitions", version["settings"]["shuffle partitions"])
    schema = "item STRING, city STRING, day INT, amount BIGINT, price DOUBLE"
    rows, *more = (spark.readStream.schema(schema).csv(str(number)) for number in range(version["sources"]))
    for other in more:
        rows = rows.union(other)
    if version["values"]:
        values = [functions.expr(value[0]) for value in version["values"]]
        rows = rows.groupBy(*[key[0] for key in version["keys"]]).agg(*values)
    writer = rows.writeStream.outputMode("update").foreachBatch(lambda rows, number: rows.collect())
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    try:
        writer.start().awaitTermination()
    except PySparkException as error:
        return str(error).splitlines()[0]
    return ""

found = []
for number, (old, new) in enumerate(json.load(sys.stdin)):
    checkpoint = f"checkpoint {number}"
    before = run(old, checkpoint)
    Path("0", f"{number}.csv").write_text("pen,Kiel,2,7,0.5\\n")
    found.append([before, run(new, checkpoint)])
print(json.dumps(found))
"""


def versions(old: dict[str, Any], new: dict[str, Any]) -> tuple[Version, Version]:
    before = {**SUMS, **old}
    return before, {**before, **new}


@pytest.mark.spark
@pytest.mark.slow
def test_spark_refuses_what_the_review_says(tmp_path: Path) -> None:
    asked = json.dumps([versions(old, new) for _, old, new in MOVED])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=asked,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert [before for before, _ in found] == [""] * len(MOVED)
    refused = {name for (name, _, _), (_, error) in zip(MOVED, found, strict=True) if error}
    said = {name for name, old, new in MOVED if start_of(*versions(old, new), KEYS, unfinished=False).start == REFUSED}
    assert said == refused
    assert 5 <= len(refused) <= len(MOVED) - 5


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
    finding = judge_review(InNotebook("review", {"review": lambda *_: given}), find("12b-review").public[0])
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
    assert judge_review(InNotebook("review", {"review": review}), variant).passed
