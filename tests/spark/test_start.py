"""The sinks in a job of somebody else's: one call that locks, recovers and starts, as README shows it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from labkit.spark.options import HELLO_WORLD_HELLO
from labkit.stores import open_store

pytestmark = pytest.mark.spark

SCRIPT = """
import json, sys
from pathlib import Path
from pyspark.sql import functions as F
from labkit.core.errors import InvalidInput, JobFailed
from labkit.spark.session import start_session
from labkit.spark.source import LogSource
from labkit.spark.start import start

base, log = Path(sys.argv[1]), sys.argv[2]
spark = start_session("local[2]", base / "scratch", 2, (base / "log").open("wb"))
slow_imports = sorted({"numpy", "pandas", "pyarrow"} & sys.modules.keys())
spark.dataSource.register(LogSource)
words = spark.readStream.format("labkit_log").option("path", log).load()
frame = words.selectExpr("offset", "word AS key", "1L AS value")
refusals = []

def refused(*arguments, **options):
    try:
        start(*arguments, **options)
    except InvalidInput as error:
        refusals.append(str(error))

place = {"store": "sqlite", "location": base / "store.sqlite"}
refused(words, base / "wrong", sink="append", **place)
assert not (base / "wrong").exists()
query = start(frame, base / "checkpoint", sink="two_phase", **place)
refused(frame, base / "checkpoint", sink="two_phase", **place)
query.await_end()
refused(frame, base / "checkpoint", sink="append", **place)
again = start(frame, base / "checkpoint", sink="two_phase", **place)
again.await_end()
options = place | {"location": base / "other.sqlite"}
for wrong in ({"sink": "two-phase"}, {"sink": None}, {"sink": "wal", "order": "spark"},
              {"sink": "append", "order": "decision"}, {"sink": "wal", "order": "none"},
              {"sink": "append", "store": "s"}):
    refused(frame, base / "misspelt", **(options | wrong))
assert not (base / "misspelt").exists()

@F.udf("long")
def fails_once(offset):
    if not (base / "repaired").exists():
        raise ValueError("task failed")
    return offset

failing = frame.withColumn("offset", fails_once("offset"))
query = start(failing, base / "failing", sink="two_phase", **options)
failed = []
for _ in range(2):  # a second wait must not close another file in place of the lock
    try:
        query.await_end()
    except JobFailed as error:
        failed.append(str(error))
(base / "repaired").touch()
start(failing, base / "failing", sink="two_phase", **options).await_end()
import numpy as np
java = spark.sparkContext._jvm.java
converted = [java.lang.String.valueOf(np.int64(7)), java.util.Arrays.toString(np.array([1, 2]))]
print(json.dumps([refusals, failed, slow_imports, converted]))
spark.stop()
"""


@pytest.mark.slow
def test_a_query_of_ones_own_is_locked_recovered_started_and_finished(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(HELLO_WORLD_HELLO)],
        stdout=subprocess.PIPE,
        timeout=600,
        check=True,
    )
    (columns, in_use, other, *misspelt), failed, slow_imports, converted = json.loads(done.stdout)
    assert slow_imports == [], "PySpark imported what only a program with NumPy's values needs"
    assert converted == ["7", "[1, 2]"], "NumPy's values still reach the JVM"
    assert "the columns ['offset', 'key', 'value'], not ['offset', 'word']" in columns
    assert "is still running this query" in in_use
    assert "belongs to another query, whose strategy is 'two_phase' and not 'append'" in other
    assert len(misspelt) == 6
    assert all("\n" not in each for each in misspelt)
    assert "two_phase" in misspelt[0]
    assert "engine" in misspelt[2]
    assert "wal or two_phase" in misspelt[3]
    assert len(failed) == 2
    for name in ("store.sqlite", "other.sqlite"):
        store = open_store("sqlite", tmp_path / name)
        assert sorted((row.offset, row.key, row.value) for row in store.history()) == [
            (0, "hello", 1),
            (1, "world", 1),
            (2, "hello", 1),
        ]
        assert list(store.hidden()) == []
        store.close()
