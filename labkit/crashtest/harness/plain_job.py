"""The user's sink in a plain job, without an instrument: what is started when a sink is watched from the kernel.

    python -m labkit.crashtest.harness.plain_job run|reset JOB

It starts a session, reads the rows of a folder in batches, and ends when the query has. Started again, it goes on from
its checkpoint, as any job does. This module must not record, wait or kill.
"""

import importlib
import inspect
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from labkit.crashtest.harness.subject import BY_NAME, Adapter, module_name
from labkit.crashtest.instrument.project import package_root
from labkit.crashtest.rows import FILES
from labkit.crashtest.spark_options import SparkOptions
from labkit.host.processes import wire

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MASTER = "local[1,2]"
"""As a driver under test: one task at a time."""

_POLL = 0.05


class PlainJob(Struct, frozen=True):
    """One job."""

    file: str
    """The user's file; of a sink that is known by its name that of its reader."""
    name: str
    adapter: Adapter
    folder: str
    """Where its input and its checkpoint are."""
    schema: str | None
    options: dict[str, str]
    conf: dict[str, str]
    jars: list[str]
    reader: str
    """The file that has `reset`."""

    @property
    def checkpoint(self) -> Path:
        """Of its query."""
        return Path(self.folder, "checkpoint")

    @property
    def input(self) -> Path:
        """The rows."""
        return Path(self.folder, "input")


def load(file: str) -> ModuleType:
    """Imports the file under the name by which every Python worker finds it, too."""
    root = str(package_root(file))
    name = Path(file).stem if root == str(Path(file).parent) else module_name(file)
    for folder in (root, str(Path.cwd())):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    paths = [root, str(Path.cwd()), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return importlib.import_module(name)


def run(job: PlainJob) -> None:
    """From the checkpoint, or from nothing, to the end of the rows."""
    from labkit.spark.session import start_session

    module = load(job.file)
    profile = SparkOptions(job.conf, tuple(job.jars)).profile(instrumented=False)
    scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=job.folder))
    spark = start_session(MASTER, scratch, FILES, sys.stderr.buffer, profile)
    recover = getattr(module, "recover", None)
    if callable(recover):
        recover(str(job.checkpoint))
    query = start(spark, job, module)
    query.awaitTermination()
    spark.stop()
    shutil.rmtree(scratch, ignore_errors=True)


def start(spark: "SparkSession", job: PlainJob, module: ModuleType) -> "StreamingQuery":
    """Starts the query as a job of the user's would."""
    schema = job.schema or spark.read.json(str(job.input)).schema
    rows = (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", FILES)
        .json(str(job.input))
    )
    by_name = job.adapter in BY_NAME
    found: Any = None if by_name else getattr(module, job.name)
    if job.adapter is Adapter.STREAM or by_name:
        return _started(job, rows, found)
    writer = rows.writeStream.trigger(availableNow=True).option(
        "checkpointLocation", str(job.checkpoint)
    )
    if job.adapter is Adapter.BATCH:
        return writer.foreachBatch(found).start()
    if job.adapter is Adapter.WRITER:
        made: Any = found() if inspect.isclass(found) else found
        return writer.foreach(made).start()
    spark.dataSource.register(found)
    return writer.format(found.name()).options(**job.options).start()


def _started(job: PlainJob, rows: "DataFrame", found: Any) -> "StreamingQuery":
    """Has the user's code start it, with this job's checkpoint and trigger."""
    from labkit.crashtest.instrument.streams import Start, Starter, wants_writer

    def begin() -> object:
        if job.adapter is Adapter.FORMAT:
            return rows.writeStream.format(job.name).options(**job.options)
        if job.adapter is Adapter.TABLE:
            return rows.writeStream.options(**job.options).toTable(job.name)
        return found(rows.writeStream if wants_writer(found) else rows)

    starter = Starter(begin, Start(None, str(job.checkpoint), "", []))
    # No deadline here: the user's function may take its time, and whoever watches this process ends it at its --limit.
    while (query := starter.query()) is None:
        time.sleep(_POLL)
    return query


def reset(job: PlainJob) -> None:
    """Empties the store by the user's own function, and forgets the checkpoint."""
    load(job.reader).reset()
    for path in Path(job.folder).glob("scratch-*"):
        shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(job.checkpoint, ignore_errors=True)


def main(verb: str, path: str) -> None:
    """The program."""
    job = wire.decode(Path(path).read_bytes(), PlainJob)
    {"run": run, "reset": reset}[verb](job)


if __name__ == "__main__":
    main(*sys.argv[1:])
