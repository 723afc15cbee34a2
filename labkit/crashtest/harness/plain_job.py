"""Runs the user's sink in a plain Spark job that records nothing itself.

    python -m labkit.crashtest.harness.plain_job run JOB
    python -m labkit.crashtest.harness.plain_job wait JOB FOLDER

The test observes the job's system calls instead, or its lines of Python where it cannot watch system calls. The job
starts a session, reads the rows of a folder in batches, and ends with its query. When started again, it continues from
its checkpoint, like any job.

With `wait` the job starts its session ahead of time. It makes the file `ready` in FOLDER when Spark is warm, and waits
for the file `go` there before it runs any code of the user. The file `go` names the description of the job to run,
which may have other queries, and says whether to `keep` the session. If so, and if the sink left nothing in the
session, the process makes the file `done` after its work, and waits for the next `go`.
"""

import atexit
import gc
import importlib
import inspect
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import psutil
from msgspec import Struct

from labkit.crashtest.harness.leftovers import END_SECONDS, MARK, marked_processes, opened, threads
from labkit.crashtest.project import belongs, package_root
from labkit.crashtest.rows import FILES, SCHEMA, generate
from labkit.crashtest.spark_options import SparkOptions
from labkit.crashtest.subject import BY_NAME, IN_JVM, RAISED, Adapter, module_name
from labkit.host.line_trace import connection
from labkit.host.processes import wire

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MASTER = "local[1,2]"
"""One task at a time; a task that fails is tried once more."""

DAEMON = "pyspark.daemon"
"""The module that starts Spark's Python workers, a word of their command lines."""

_FRAME = re.compile(r' *File "(?P<file>.*)", line (?P<line>\d+)')
_ERROR = re.compile(r"(?P<name>[A-Za-z_][\w.]*): (?P<text>.*)")
"""A pattern for the last line of a Python traceback, which has the error's name and text and is not indented."""

_POLL = 0.05
READY, GO, DONE = "ready", "go", "done"
"""The files by which a job reports that Spark is warm, gets its next order, and reports that it waits again."""
_GO_POLL = 0.01


class Query(Struct, frozen=True):
    """One Spark query of a job under test: the folder of the query's input rows, and the folder of its checkpoint."""

    input: str
    checkpoint: str


class Go(Struct, frozen=True):
    """The content of the file `go`, by which labkit tells a waiting Spark session which job to run next."""

    job: str
    keep: bool
    """Whether the session may be kept for another job."""


class PlainJob(Struct, frozen=True):
    """The description of a plain Spark job that writes into the user's sink, stored as a JSON file."""

    file: str
    """The user's file with the sink. If the sink is one of Spark's own (`BY_NAME`), the file with the reader."""
    name: str
    adapter: Adapter
    folder: str
    """The folder that contains the job's input and checkpoint."""
    schema: str | None
    options: dict[str, str]
    conf: dict[str, str]
    jars: list[str]
    queries: list[Query] = []
    """The queries that the job runs at the same time; if empty, the one of `input` and `checkpoint`."""

    @property
    def checkpoint(self) -> Path:
        """The checkpoint folder of the job's query."""
        return Path(self.folder, "checkpoint")

    @property
    def input(self) -> Path:
        """The folder from which the job's query reads its input rows."""
        return Path(self.folder, "input")

    def all_queries(self) -> list[Query]:
        """Return the queries that the job runs at the same time."""
        return self.queries or [Query(str(self.input), str(self.checkpoint))]


def load(file: str) -> ModuleType:
    """Import the user's file under the module name that Spark's Python workers use as well, and return the module."""
    root = str(package_root(file))
    name = Path(file).stem if root == str(Path(file).parent) else module_name(file)
    return importlib.import_module(name)


def reach(file: str) -> None:
    """Extend `sys.path` and PYTHONPATH so that this process and Spark's Python workers can import the user's file."""
    root = str(package_root(file))
    for folder in (root, str(Path.cwd())):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    paths = [root, str(Path.cwd()), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def run(job: PlainJob) -> None:
    """Run the job until it has processed all its input; the job continues from its checkpoint if there is one."""
    reach(job.file)
    module = load(job.file)
    scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=job.folder))
    spark = session(job, scratch)
    _run(job, spark, module)
    spark.stop()
    shutil.rmtree(scratch, ignore_errors=True)


def wait(job: PlainJob, folder: Path) -> None:
    """Start a Spark session with its files in `folder`, and run each job that the file `go` in this folder names.

    Returns as soon as a job has made the session unfit for further jobs, for example because a thread is left.
    """
    reach(job.file)
    spark = session(job, folder)
    warm_up(spark, job.adapter, folder)
    before = Traces(spark, folder)
    (folder / READY).touch()
    while True:
        while not (folder / GO).exists():
            time.sleep(_GO_POLL)
        go = wire.decode((folder / GO).read_bytes(), Go)
        (folder / GO).unlink()
        _run(read(go.job), spark, load(job.file))
        # A sink may leave state in the JVM, which this process cannot examine.
        if not go.keep or job.adapter in IN_JVM or job.jars or before.left():
            break
        for name, module in list(sys.modules.items()):
            if belongs(getattr(module, "__file__", None) or "<none>", _folders(job.file)):
                del sys.modules[name]
        gc.collect()
        (folder / DONE).touch()
    spark.stop()


def _folders(file: str) -> tuple[Path, ...]:
    return package_root(file), Path.cwd()


class Traces:
    """A snapshot of a Spark session and its process before a job, to detect later what the user's sink left there."""

    def __init__(self, spark: "SparkSession", scratch: Path) -> None:
        """Record the present state of the session and of its process; files in the folder `scratch` do not count."""
        self._spark, self._scratch = spark, scratch
        self._open, self._threads, self._before = opened(scratch), threads(), self._now()

    def _now(self) -> tuple[object, ...]:
        session = self._spark._jsparkSession  # noqa: SLF001  # no public name is as fast
        tables = session.sessionState().catalog().listTables("default").mkString(",")
        at_end = atexit._ncallbacks()  # noqa: SLF001  # no public name counts them
        # A listener outlives its query, and would be called for the queries of the next run.
        listeners = {str(each) for each in self._spark.streams._jsqm.listListeners()}  # noqa: SLF001
        signals = [signal.getsignal(number) for number in signal.valid_signals()]
        processes = [pid for pid in marked_processes(os.environ.get(MARK, "")) if DAEMON not in _words_of(pid)]
        return dict(os.environ), Path.cwd(), self._spark.conf.getAll, tables, listeners, at_end, signals, processes

    def left(self) -> bool:
        """Kill Spark's Python workers; return whether the sink left anything else, such as a thread."""
        end_workers()
        is_open = opened(self._scratch) - self._open
        return bool(is_open or threads() - self._threads or self._now() != self._before)


def end_workers() -> None:
    """Kill the Python worker processes of Spark; Spark starts new ones when it needs them."""
    workers = [each for each in psutil.Process().children(recursive=True) if DAEMON in _words_of(each.pid)]
    for worker in workers:
        with suppress(psutil.Error):
            worker.kill()
    psutil.wait_procs(workers, END_SECONDS)


def _words_of(pid: int) -> list[str]:
    with suppress(psutil.Error):
        return psutil.Process(pid).cmdline()
    return []


def session(job: PlainJob, scratch: Path) -> "SparkSession":
    """Start the Spark session of a job, with Spark's temporary files in `scratch`."""
    from labkit.spark.session import start_session

    profile = SparkOptions(job.conf, tuple(job.jars)).profile()
    return start_session(MASTER, scratch, FILES, sys.stderr.buffer, profile)


def warm_up(spark: "SparkSession", adapter: Adapter, scratch: Path) -> None:
    """Run a query that discards its rows, so that the first query of the user's sink starts faster.

    `adapter` is the interface by which Spark calls the user's sink; the query uses the same one if possible.
    """
    folder = scratch / "warm"
    rows = generate(1)
    rows.write(folder / "input")
    kind = Adapter.STREAM if adapter in BY_NAME else adapter
    harmless = str(Path(__file__).with_name("harmless.py"))
    warm = PlainJob(harmless, kind.name.lower(), kind, str(folder), SCHEMA, {}, {}, [])
    start(spark, warm, load(harmless), *warm.all_queries())()


def _run(job: PlainJob, spark: "SparkSession", module: ModuleType) -> None:
    recover = getattr(module, "recover", None)
    queries = job.all_queries()
    if callable(recover):
        for query in queries:
            recover(query.checkpoint)
    for await_end in [start(spark, job, module, query) for query in queries]:
        await_end()


def start(spark: "SparkSession", job: PlainJob, module: ModuleType, query: Query) -> Callable[[], object]:
    """Start a query that writes into the user's sink, and return a function that waits for the query's end."""
    schema = job.schema or spark.read.json(query.input).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).json(query.input)
    by_name = job.adapter in BY_NAME
    sink: Any = None if by_name else getattr(module, job.name)
    if job.adapter is Adapter.STREAM or by_name:
        return _started(job, rows, sink, query.checkpoint)
    writer = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", query.checkpoint)
    if job.adapter is Adapter.BATCH:
        return writer.foreachBatch(sink).start().awaitTermination
    if job.adapter is Adapter.WRITER:
        instance: Any = sink() if inspect.isclass(sink) else sink
        return writer.foreach(instance).start().awaitTermination
    spark.dataSource.register(sink)
    return writer.format(sink.name()).options(**job.options).start().awaitTermination


def _started(job: PlainJob, rows: "DataFrame", sink: Any, checkpoint: str) -> Callable[[], object]:
    from labkit.crashtest.harness.starting import Start, begin, wants_writer

    def code() -> object:
        if job.adapter is Adapter.FORMAT:
            return rows.writeStream.format(job.name).options(**job.options)
        if job.adapter is Adapter.TABLE:
            return rows.writeStream.options(**job.options).toTable(job.name)
        return sink(rows.writeStream if wants_writer(sink) else rows)

    suffix = Path(checkpoint).name.removeprefix(Path(job.checkpoint).name)
    start = Start(checkpoint, suffix, [])
    future = begin(code, start)
    # No deadline here: the user's function may be slow, and the watcher kills this process after --limit seconds.
    while not start.started and not future.done():
        time.sleep(_POLL)
    if not start.started:
        future.result()
        raise TypeError(
            "the sink's function started no query; start one, or return the writer, as in `return "
            "stream.writeStream.format(...)`"
        )

    def await_end() -> None:
        start.started[0].awaitTermination()
        future.result()

    return await_end


def read(path: str) -> PlainJob:
    """Return the job that the JSON file at `path` describes."""
    return wire.decode(Path(path).read_bytes(), PlainJob)


def sentence_of(error: Exception) -> str:
    """Return an error of the user's code as one sentence: its type, message, file and line.

    The sentence has at most 400 characters, and leaves out the text that Spark puts around the error.
    """
    _, traceback, text = str(error).partition("Traceback (most recent call last)")
    where = ""
    for line in text.splitlines() if traceback else []:
        frame = _FRAME.match(line)
        if frame and "/site-packages/" not in frame["file"]:
            where = f" ({Path(frame['file']).name}:{frame['line']})"
        if raised := _ERROR.fullmatch(line):
            sentence = f"{raised['name'].rpartition('.')[2]}: {raised['text'][:300]}{where}"
            return (sentence + _cause_in_java(text.partition(line)[2]))[:400]
    from labkit.spark.queries import reason

    return reason(error)[:300]


def _cause_in_java(text: str) -> str:
    """Return the JVM's exception and its root cause from the text of a Py4J error; empty if the text has none."""
    raised = re.findall(r"^: (.*)", text, re.MULTILINE)[:1]
    causes = re.findall(r"^\s*Caused by: (.*)", text, re.MULTILINE)[-1:] if raised else []
    sentence = "; caused by ".join(dict.fromkeys([*raised, *causes]))
    return f" {sentence}" if sentence else ""


def main(verb: str, path: str, *more: str) -> None:
    """Run the job that the file `path` describes (`verb` is `run`), or start Spark and wait for such jobs (`wait`).

    With `wait`, `more` is the path of a folder. Spark keeps its temporary files there, and labkit writes a file into it
    that names the next job to run.
    """
    job, watcher = read(path), connection()
    if watcher is not None and verb == "run":
        folders = _folders(job.file)
        watcher.trace(lambda file: belongs(file, folders))
    try:
        wait(job, Path(*more)) if verb == "wait" else run(job)
    except Exception as error:
        print(f"{RAISED}{sentence_of(error)}", file=sys.stderr, flush=True)
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
