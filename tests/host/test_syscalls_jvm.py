"""A watched JVM with Python workers: Spark, unmodified. One run that ends, and one that is killed between two
renames.
"""

import os
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.host.java import Java
from labkit.host.syscalls.calls import Answer, Call, CallKind, WatchedRun
from labkit.host.syscalls.watching import watch

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = """
import os
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
for number in range(2):
    os.makedirs("in", exist_ok=True)
    with open(f"in/{number}.json", "w") as file:
        file.write('{"id": %d}' % number)
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.sql.shuffle.partitions", "1").getOrCreate())
rows = spark.readStream.schema("id int").option("maxFilesPerTrigger", 1).json("in")
rows = rows.select(udf(lambda value: value + 1, "int")("id").alias("id"))
query = (rows.writeStream.foreachBatch(lambda batch, _: batch.write.mode("append").parquet("out"))
         .option("checkpointLocation", "checkpoint").trigger(availableNow=True).start())
query.awaitTermination()
"""


def run(place: Path, java: Java, at: str) -> tuple[WatchedRun, list[Effect]]:
    """The job under watch, killed at a point; what it did below its folder, and what it sent."""
    namer, effects = Namer([place]), list[Effect]()

    def decide(call: Call) -> Answer:
        effect = namer.name(call)
        if effect is None:
            return Answer.GO_ON
        effects.append(effect)
        return Answer.KILL if effect.name == at else Answer.GO_ON

    ended = watch(
        [sys.executable, "-c", textwrap.dedent(JOB)],
        folder=place,
        environment={
            **os.environ,
            "JAVA_HOME": str(java.path.resolve().parent.parent),
            "PYSPARK_PYTHON": sys.executable,
        },
        output=place.with_name("output"),
        decide=decide,
    )
    return ended, effects


def renamed(effects: list[Effect]) -> list[str]:
    """The renames of logs and rows, in their order, without checksum files."""
    shown = ("checkpoint/offsets/", "checkpoint/commits/", "out/part-")
    return [
        each.file.partition("-")[0].removeprefix("checkpoint/")
        for each in effects
        if each.kind is CallKind.RENAME
        and each.file.startswith(shown)
        and not each.file.rpartition("/")[2].startswith(".")
    ]


@pytest.mark.variant
@pytest.mark.usefixtures("watched_calls")
def test_spark_is_seen_and_is_killed_between_two_renames(tmp_path: Path, java: Java) -> None:
    place = tmp_path.resolve() / "work"
    place.mkdir()
    said = place.with_name("output")
    ended, effects = run(place, java, at="rename checkpoint/commits/<n> #1")
    assert ended.status is None, said.read_text()
    assert renamed(effects) == ["offsets/0", "out/part", "commits/0"]
    assert not (place / "checkpoint/commits/0").exists()
    assert ended.emptied.left == []
    assert len(ended.emptied.killed) >= 2
    assert not any(map(psutil.pid_exists, ended.emptied.killed))

    ended, effects = run(place, java, at="nowhere")
    assert ended.status == 0, said.read_text()
    assert renamed(effects) == ["out/part", "commits/0", "offsets/1", "out/part", "commits/1"]
    # Driver, JVM and workers talk to each other all the time; none of that leaves the command.
    assert [each.name for each in effects if each.kind is CallKind.SEND] == []
    assert {each.call.process for each in effects} >= {effects[-1].call.process}
    assert ended.emptied is None or ended.emptied.left == []
    assert not [name for name in ended.unseen if not name.startswith("mmap")]
    assert not [path for paths in ended.unseen_paths.values() for path in paths if path.startswith(str(place))]
