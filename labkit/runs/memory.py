"""Spark's memory sink in a query without a checkpoint: what can be read inside the driver, and what its death leaves.

Nothing of it is a store: the table is a list in the driver, and the checkpoint that Spark makes for itself lies in a
temporary folder of which no later driver knows. This module must not judge: nobody outside could ever read a row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.core.errors import JobFailed
from labkit.host.processes.child import Drive
from labkit.runs.flight import Tell
from labkit.runs.scenario import plan
from labkit.spark.options import PARTITIONS, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "counts"


@dataclass(frozen=True)
class Life:
    """One driver: the rows that its memory table had in the end, as (offset, word, count), and how it died."""

    rows: list[tuple[int, str, int]]
    signal: int
    left: list[str]
    """Files that are still there when every process is dead, beside the driver's log."""


def live(folder: Path, number: int, tell: Tell, patience: float) -> Life:
    """One driver from its start to its SIGKILL. Raises `JobFailed` when it does nothing."""
    scratch = folder / "scratch"
    spec: dict[str, Any] = {
        "master": f"local[{PARTITIONS + 1}]",
        "profile": "small",
        "active": 1,
        "archive": True,
        "scratch": str(scratch),
        "log": str(folder / f"driver-{number}.log"),
        "cells": [{"name": "memory", "memory": True}],
    }
    events: dict[str, dict[str, Any]] = {}
    tell("driver", {})
    with Drive(spec, patience) as drive:
        for event in drive.events():
            events[event["event"]] = event
            tell(event["event"], event)
    if "table" not in events:
        because = events.get("failed", {}).get("because", "it ended by itself")
        raise JobFailed(
            f"the driver with the memory table failed: {because}; {spec['log']} says more."
        )
    rows = [(offset, key, value) for offset, key, value in events["table"]["rows"]]
    files = (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".log"
    )
    return Life(
        rows,
        events["killed"]["signal"],
        [str(path.relative_to(folder)) for path in files],
    )


class MemoryCell:
    """The running count of the three records into a memory table; ends when everything was counted."""

    name = "memory"

    def __init__(self, spark: "SparkSession", report: Callable[..., None]) -> None:
        from labkit.spark.jobs import keep_state, running
        from labkit.spark.source import LogSource
        from labkit.spark.start import register

        register(spark, LogSource)
        keep_state(spark, State.ROCKSDB)
        reader = spark.readStream.format(LogSource.name()).option(
            "path", str(plan().input)
        )
        writer = (
            running(reader.load())
            .writeStream.format("memory")
            .queryName(TABLE)
            .outputMode("append")
        )
        self._report = report
        self._spark, self._query = spark, writer.trigger(availableNow=True).start()

    def poll(self) -> str | None:
        """`ended` once the query has; its table is told before. Raises what it failed with."""
        if self._query.isActive:
            return None
        error = self._query.exception()
        if error is not None:
            raise error
        rows = sorted(
            (row.offset, row.key, row.value)
            for row in self._spark.table(TABLE).collect()
        )
        self._report("table", rows=rows)
        return "ended"
