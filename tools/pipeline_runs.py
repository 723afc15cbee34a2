"""Provide a pipeline of a real engine with all that it needs: interpreter, jars, settings, servers, and a folder.

The file data/pipelines/engines/engines.toml states what each needs; servers and folder are removed after the `with`
block that requested them.
"""

import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from pipeline_environments import interpreter, jars
from pipeline_records import Report
from psycopg.conninfo import conninfo_to_dict

from labkit.cli import execute
from labkit.core.errors import InvalidInput, JobFailed
from labkit.host.java import find_java
from labkit.host.servers.tethered import tethered_kafka, tethered_postgres
from labkit.host.syscalls.calls import Answer
from labkit.host.syscalls.watching import watch
from labkit.teach.engine_pipelines import ENGINES, PROJECT, Pipeline

HEALTHY_SECONDS = 600
"""The seconds that a run without a crash may take; the slowest needs 30 on an idle machine of two cores."""

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""JVM options for a faster start on one core, which suffices for nine rows."""
LIMIT_SECONDS = 300
"""The seconds without activity after which a pipeline is killed; Spark may need minutes to start."""


@dataclass(frozen=True)
class Prepared:
    """A pipeline with all that it needs; the `with` block sets the working folder and environment variables for it."""

    pipeline: Pipeline
    command: str
    read_command: str
    """The command that prints the rows as JSON Lines; empty if the reader is a function for labkit's interpreter."""
    scratch: Path
    setup: str = ""
    """The command that runs after each reset; empty if there is none."""

    def crash_test(self, options: Sequence[str]) -> int:
        """Run `labkit crashtest` for this pipeline; return the exit code."""
        expected = ["--expected", str(ENGINES / "expected.jsonl")]
        feed = ["--feed", self.setup] if self.setup else []
        reading = ["--reader", f"{ENGINES / self.pipeline.reader}:read"]
        if self.read_command:
            reading = ["--read-command", self.read_command, "--reset", "rm -rf output checkpoint"]
        words = ["crashtest", "--command", self.command, *reading, *expected, *feed]
        patient = ["--limit", str(LIMIT_SECONDS), *self.pipeline.options]
        return execute([*words, *patient, *map(self.named, options)])

    def named(self, point: str) -> str:
        """Return the name of a crash point in this run, with addresses in place of `<kafka>` and `<postgres>`."""
        if folder := os.environ.get("PGHOST"):
            point = point.replace("<postgres>", f"unix:{Path(folder).resolve()}/.s.PGSQL.5432")
        return point.replace("<kafka>", os.environ.get("KAFKA", "<kafka>"))

    def telling(self) -> list[str]:
        """Return options that select the crash points in `shown_by`. Raises `InvalidInput` if there are none."""
        if self.pipeline.shown_by:
            return [f"--only={point}" for point in self.pipeline.shown_by]
        raise InvalidInput(f"{self.pipeline.name}: engines.toml names no crash point in shown_by; add one.")

    def report(self, options: Sequence[str]) -> Report:
        """Return the report of `labkit crashtest`. Raises `JobFailed` if there is none."""
        out = self.scratch / "out"
        code = self.crash_test([*options, "--out", str(out)])
        if not (out / "report.json").exists():
            raise JobFailed(f"{self.pipeline.name}: labkit crashtest ended with {code}; see its message above.")
        text = (out / "report.json").read_text(encoding="utf-8")
        report: Report = json.loads(text)
        return report

    def healthy(self) -> list[dict[str, object]]:
        """Reset the pipeline's store, run the pipeline once, and return the rows that it wrote. Raises `JobFailed`."""
        self._reset()
        self._run(self.command)
        text = self._run(self.read_command or self._in_reader("print(*map(json.dumps, read()), sep='\\n')"))
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def effects(self, out: Path) -> int:
        """Reset the pipeline's store, and run the pipeline once under `labkit effects --out`; return the exit code."""
        self._reset()
        words = ["effects", "--command", self.command, "--out", str(out)]
        return execute([*words, "--limit", str(LIMIT_SECONDS)])

    def _reset(self) -> None:
        if not self.read_command:
            self._run(self._in_reader("reset()"))
        if self.setup:
            self._run(self.setup)

    def _in_reader(self, statement: str) -> str:
        module = self.pipeline.reader.removesuffix(".py")
        path = f"import json, sys; sys.path.insert(0, {str(ENGINES)!r})"
        code = f"{path}; from {module} import read, reset; {statement}"
        return shlex.join([sys.executable, "-c", code])

    def _run(self, command: str) -> str:
        """Run a command and return its output. If this process ends, so does the command. Raises `JobFailed`."""
        end = time.monotonic() + HEALTHY_SECONDS
        output = self.scratch / f"{time.monotonic_ns()}.log"
        done = watch(
            ["/bin/sh", "-c", command],
            folder=Path.cwd(),
            environment=os.environ,
            output=output,
            decide=lambda _call: Answer.GO_ON,
            tick=lambda: Answer.KILL if time.monotonic() > end else Answer.GO_ON,
            kinds=frozenset(),
        )
        text = output.read_text(encoding="utf-8", errors="replace")
        if done.status == 0:
            return text
        ended = f"exit code {done.status}" if done.status else "the end of its time"
        raise JobFailed(f"{text[-2000:]}\n{self.pipeline.name}: {ended}: {command}")


@contextmanager
def prepared(pipeline: Pipeline) -> Iterator[Prepared]:
    """Download, install and start what the pipeline needs; servers and folder are removed after the `with` block."""
    with ExitStack() as stack:
        # Names of crash points leave out the varying part of such a folder's name.
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tmp")))
        work, scratch, settings = (place / name for name in ("work", "tmp", "conf"))
        for folder in (work, scratch, settings):
            folder.mkdir()
        jar_files = jars(pipeline.jars)
        command, read_command, setup = _commands(pipeline)
        lines = spark_settings(work, scratch, jar_files)
        (settings / "spark-defaults.conf").write_text(lines, encoding="utf-8")
        variables = {
            "JAVA_HOME": str(find_java().path.resolve().parent.parent),
            "JAVA_TOOL_OPTIONS": f"{QUICK_START} -Djava.io.tmpdir={scratch}",
            "TMPDIR": str(scratch),
            "SPARK_CONF_DIR": str(settings),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # Otherwise PyFlink needs Beam to start, although no pipeline has Python functions.
            "_python_worker_execution_mode": "process",
            "FLINK_JARS": ";".join(f"file://{jar}" for jar in jar_files),
            "JARS": os.pathsep.join(map(str, jar_files)),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        for server in pipeline.needs:
            variables |= SERVERS[server](stack, place)
        stack.enter_context(patch.dict(os.environ, variables))
        stack.enter_context(chdir(work))
        yield Prepared(pipeline, command, read_command, scratch, setup)


def _commands(pipeline: Pipeline) -> tuple[str, str, str]:
    """Return the commands that start the pipeline, read its rows, and set it up; the last two may be empty."""
    python, program = str(interpreter(pipeline.environment)), str(pipeline.program)
    command = shlex.join([python, program, *pipeline.arguments])
    setup = shlex.join([python, program, *pipeline.setup]) if pipeline.setup else ""
    if pipeline.read_environment == PROJECT:
        return command, "", setup
    reader = [str(interpreter(pipeline.read_environment)), str(ENGINES / pipeline.reader)]
    return command, shlex.join(reader), setup


def spark_settings(work: Path, scratch: Path, found: list[Path]) -> str:
    """Return the text of spark-defaults.conf for nine rows on a small machine, with jars and catalogs."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    names = " ".join(jar.name for jar in found)
    if found:
        settings["spark.jars"] = ",".join(str(jar) for jar in found)
    if "delta-spark" in names:
        settings["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        settings["spark.databricks.delta.snapshotPartitions"] = "1"
        catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        settings["spark.sql.catalog.spark_catalog"] = catalog
    if "iceberg-spark" in names:
        settings["spark.sql.catalog.output"] = "org.apache.iceberg.spark.SparkCatalog"
        settings["spark.sql.catalog.output.type"] = "hadoop"
        settings["spark.sql.catalog.output.warehouse"] = str(work / "output")
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def _postgres(stack: ExitStack, place: Path) -> dict[str, str]:
    """Start a PostgreSQL server on a private Unix socket; return the variables with its address for psycopg and JDBC.

    It is reached through a symbolic link, so that its address differs between tests only in the part that names of
    crash points leave out.
    """
    address = stack.enter_context(tethered_postgres()).address
    parts = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    (place / "postgres").symlink_to(parts["host"])
    factory = "org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg"
    socket = f"{place}/postgres/.s.PGSQL.5432"
    options = f"socketFactory={factory}&socketFactoryArg={socket}"
    return {
        "PGHOST": f"{place}/postgres",
        "PGUSER": parts["user"],
        "PGDATABASE": parts["dbname"],
        "JDBC_URL": f"jdbc:postgresql://localhost/{parts['dbname']}?{options}",
    }


def _kafka(stack: ExitStack, _place: Path) -> dict[str, str]:
    return {"KAFKA": stack.enter_context(tethered_kafka()).address}


SERVERS = {"postgres": _postgres, "kafka": _kafka}
"""By kind of server, a function that starts one until the stack closes, and returns variables with its address."""


def expected_rows() -> list[dict[str, object]]:
    """Return the rows that each pipeline should write."""
    text = (ENGINES / "expected.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
