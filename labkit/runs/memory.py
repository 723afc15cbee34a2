"""Run Spark's memory sink, read its table inside the driver, kill the driver, and list the files that remain.

The memory table is no store but a list in the driver, and Spark puts the query's checkpoint into a temporary folder
that no later driver knows.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from labkit.core.errors import JobFailed
from labkit.host.processes import wire
from labkit.host.processes.child import SupervisedDriver
from labkit.host.processes.events import DriverFailed, DriverStarts, Ended, Failed, Killed, TableRead
from labkit.host.processes.protocol import Launch
from labkit.host.processes.supervised import report
from labkit.runs.driver_task import DriverTask
from labkit.runs.progress import Tell
from labkit.runs.scenario import plan
from labkit.spark.options import PARTITIONS, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "counts"
MEMORY: Final = "memory"
"""The name of the query that writes the memory table."""


@dataclass(frozen=True)
class Life:
    """The result of one driver: the last rows of its memory table, as (offset, word, count), and the signal that
    killed it.
    """

    rows: list[tuple[int, str, int]]
    signal: int
    left: list[str]
    """The files, except driver logs, that still exist after every process has been killed."""


def live(folder: Path, number: int, tell: Tell, patience: float) -> Life:
    """Run one driver with the memory table until it has counted all records, kill it, and return the result.

    `number` goes into the name of its log, and `patience` is in seconds. Raises `JobFailed` if the driver fails or
    reports no table.
    """
    task = DriverTask(
        master=f"local[{PARTITIONS + 1}]", profile="small", active=1, archive=True, queries=[], memory=True
    )
    launch = Launch(
        module="labkit.runs.driver",
        scratch=str(folder / "scratch"),
        log=str(folder / f"driver-{number}.log"),
        task=wire.raw(task),
    )
    table: TableRead | None = None
    killed: Killed | None = None
    because = "it ended without a report"
    tell(DriverStarts())
    with SupervisedDriver(launch, patience) as driver:
        for event in driver.events():
            tell(event)
            match event:
                case TableRead():
                    table = event
                case Killed():
                    killed = event
                case Failed() | DriverFailed():
                    because = event.because
    if table is None or killed is None:
        raise JobFailed(f"the driver with the memory table failed: {because}; see {launch.log}.")
    # All files of the JVM were in its scratch folder, which is deleted by now. This list shows whether anything is
    # left.
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".log")
    left = [str(path.relative_to(folder)) for path in files]
    return Life(table.rows, killed.proof.signal, left)


class MemoryQuery:
    """The word count of the three default records with Spark's memory sink; it ends after it has counted all of
    them.
    """

    name: str = MEMORY

    def __init__(self, spark: "SparkSession") -> None:
        from labkit.spark.jobs import keep_state, running
        from labkit.spark.queries import register
        from labkit.spark.source import LogSource

        register(spark, LogSource)
        keep_state(spark, State.ROCKSDB)
        reader = spark.readStream.format(LogSource.name()).option("path", str(plan().input))
        writer = running(reader.load()).writeStream.format("memory").queryName(TABLE).outputMode("append")
        self._spark, self._query = spark, writer.trigger(availableNow=True).start()

    def poll(self) -> Ended | None:
        """If the query has ended, report its table and return `Ended`; otherwise return None. Raises the query's
        error.
        """
        if self._query.isActive:
            return None
        error = self._query.exception()
        if error is not None:
            raise error
        rows = sorted((row.offset, row.key, row.value) for row in self._spark.table(TABLE).collect())
        report(TableRead(self.name, rows))
        return Ended(self.name)
