"""Start releases on real Spark, and print which rows each batch gave to the sink; a test reads that.

Standard input has a list of pairs of versions, as the exercise `12b-review` describes them. For each pair this program
runs the old version on two files, a batch each, lets the sink fail in the second batch in a copy, and starts the old
version again while there is no new file. Then the third file arrives, and the new version starts. It also starts from
an empty checkpoint, file by file and with all at once.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions

from labkit import lab

ORDERS = (
    (
        ("1,pen,Bonn,1,5,0.5", "13,pen,Kiel,4,4,0.5", "2,cap,,2,3,1.5", "12,fan,Oslo,8,6,2.0"),
        ("3,pen,Rom,2,7,0.25", "4,mug,Kiel,3,2,2.5", "5,jar,Rom,9,6,1.0", "11,ink,Ulm,2,4,0.5"),
    ),
    (("21,hat,Oslo,1,5,0.5",), ("22,hat,Rom,4,8,0.5",)),
)
"""The orders of each source, in files, chosen so that every mistake shows in the rows.

One order has no city, so that `count(city)` differs from `count(1)`. The first file has two pens, whose sum is larger
than every amount, and a fan, which never comes again. Two orders of the second file are below 5.
"""
LATER = (
    ("6,cap,Bonn,3,9,4.0", "7,pen,Kiel,1,1,8.0", "8,pen,Bonn,5,4,1.0", "9,mug,Ulm,6,8,0.5", "10,pen,Rom,7,4,0.5"),
    ("23,hat,Oslo,4,9,2.0",),
)
SCHEMA = "id INT, item STRING, city STRING, day INT, amount BIGINT, price DOUBLE"
STORES = "org.apache.spark.sql.execution.streaming.state."
SETTINGS = {
    "shuffle partitions": "spark.sql.shuffle.partitions",
    "state store": "spark.sql.streaming.stateStore.providerClass",
}
PROVIDERS = {"HDFS": f"{STORES}HDFSBackedStateStoreProvider", "RocksDB": f"{STORES}RocksDBStateStoreProvider"}
spark = lab.spark()


class Stopped(Exception):
    """The sink fails, so that its batch stays without a commit."""


def arrives(source: int, number: int, rows: tuple[str, ...]) -> None:
    file = Path(str(source), f"{number}.csv")
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(rows) + "\n")
    os.utime(file, (number, number))  # Spark takes the oldest file first


def query(version: Mapping[str, Any], **options: object) -> DataFrame:
    rows, *more = (
        spark.readStream.schema(SCHEMA).options(**options).csv(str(number)) for number in range(version["sources"])
    )
    for other in more:
        rows = rows.union(other)
    rows = rows.where(version["filter"])
    names = [name for name, _ in version["keys"]]
    if version["values"]:
        values = [functions.expr(value[0]) for value in version["values"]]
        return rows.groupBy(*map(functions.expr, names)).agg(*values)
    return rows.dropDuplicates(names) if names else rows


def key(version: Mapping[str, Any], row: Any) -> str:
    if version["values"]:
        return str([*row[: len(version["keys"])]])
    return str([row[name] for name, _ in version["keys"]] or row["id"])


def run(version: Mapping[str, Any], checkpoint: Path, *, stops_in: int = -1, **options: object) -> dict[str, Any]:
    """Return the batches, each as number and rows with their keys, and the error if the query failed."""
    batches: list[tuple[int, list[tuple[str, str]]]] = []

    def write(frame: DataFrame, number: int) -> None:
        batches.append((number, [(key(version, row), str(tuple(row))) for row in frame.collect()]))
        if number == stops_in:
            raise Stopped

    settings = {SETTINGS[name]: PROVIDERS.get(value, str(value)) for name, value in version["settings"].items()}
    for name, value in settings.items():
        spark.conf.set(name, value)
    writer = query(version, **options).writeStream.outputMode("update").foreachBatch(write)
    error, holds = "", True
    try:
        writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    except PySparkException as failed:
        error = str(failed).splitlines()[0]
    else:
        newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        conf = json.loads(newest.read_text().splitlines()[1])["conf"]
        holds = all(conf[name] == value for name, value in settings.items())
    return {"batches": batches, "error": error, "settings hold": holds}


def each_once(versions: list[Any]) -> dict[str, Any]:
    return {json.dumps(version): version for version in versions}


pairs = json.load(sys.stdin)
file_by_file = {"maxFilesPerTrigger": 1}
for source, files in enumerate(ORDERS):
    for number, rows in enumerate(files):
        arrives(source, number, rows)
before: dict[str, Any] = {}
places: dict[str, dict[str, Path]] = {}
for place, (name, old) in enumerate(each_once([old for old, _ in pairs]).items()):
    finished, unfinished, drained = (Path(f"{part} {place}") for part in ("finished", "unfinished", "drained"))
    before[name] = {"finished": run(old, finished, **file_by_file)}
    before[name]["idle"] = run(old, Path(shutil.copytree(finished, f"idle {place}")), **file_by_file)
    before[name]["unfinished"] = run(old, unfinished, stops_in=1, **file_by_file)
    shutil.copytree(unfinished, drained)
    before[name]["drained"] = run(old, drained, **file_by_file)
    places[name] = {"finished": finished, "unfinished": unfinished, "drained": drained}
for source, rows in enumerate(LATER):
    arrives(source, len(ORDERS[source]), rows)
anew: dict[str, Any] = {}
for place, (name, new) in enumerate(each_once([each for pair in pairs for each in pair]).items()):
    anew[name] = {
        "file by file": run(new, Path(f"new {place}"), **file_by_file),
        "at once": run(new, Path(f"one {place}")),
    }
after: dict[str, Any] = {}
found = []
for pair in pairs:
    release = json.dumps(pair)
    old, new = map(json.dumps, pair)
    if release not in after:
        after[release] = {}
        for part, checkpoint in places[old].items():
            copy = Path(shutil.copytree(checkpoint, f"{part}, release {len(after)}"))
            after[release][part] = run(pair[1], copy, **file_by_file)
    found.append({"old": before[old], "new": after[release], "anew": anew[new]})
print(json.dumps(found))
