"""Crash pipelines of real engines: `python tools/pipelines.py NAME`, or `make pipelines ONLY="NAME ..."`.

    python tools/pipelines.py                     says which there are, and what is expected of each
    python tools/pipelines.py NAME [OPTIONS]      labkit crashtest --command for it; OPTIONS go to labkit crashtest
    python tools/pipelines.py --healthy NAME      runs it once, without a crash, and compares what came out

Each needs an interpreter, jars and servers of its own (`pipeline_environments`); they are made where they are missing,
and servers end with this process. What must come out of a test is written down in data/pipelines/engines/engines.toml.
This module must not judge.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline_environments import ENGINES, PROJECT, interpreter, jars
from psycopg.conninfo import conninfo_to_dict

from labkit.core.errors import InvalidInput, JobFailed, LabError
from labkit.host.java import find_java
from labkit.host.servers.tethered import tethered_kafka, tethered_postgres

HEALTHY_SECONDS = 600
"""How long a run without a crash may take; the slowest needs half a minute on an idle machine of two cores."""

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""A JVM with these starts sooner and uses one core; nine rows need no more."""

ROWS = "[row if isinstance(row, dict) else dict(zip(('id', 'key'), row)) for row in read()]"
"""An expression for a reader's rows as mappings: a reader may also return tuples."""


@dataclass(frozen=True)
class Pipeline:
    """One entry of engines.toml, which says what the fields mean."""

    name: str
    does: str
    promise: str
    at: str
    guarantee: str
    axes: tuple[str, ...]
    reader: str
    environment: str = PROJECT
    read_environment: str = PROJECT
    pipeline: str = ""
    jars: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def program(self) -> Path:
        """The pipeline's file."""
        return ENGINES / (self.pipeline or f"{self.name}.py")

    @property
    def is_ours(self) -> bool:
        """Whether the lab's own environment is enough, so that nothing is installed."""
        return {self.environment, self.read_environment} == {PROJECT}


@dataclass(frozen=True)
class Prepared:
    """A pipeline with all that it needs: it may be run in `folder`, with these variables set."""

    pipeline: Pipeline
    folder: Path
    variables: Mapping[str, str]
    command: str
    read_command: str
    """Prints the rows as JSON Lines; empty where the reader is a function for the lab's own interpreter."""

    def crash_test(self, options: list[str]) -> int:
        """Calls `labkit crashtest` for it; gives the exit code."""
        here = [sys.executable, "-m", "labkit", "crashtest", "--command", self.command]
        expected = ["--expected", str(ENGINES / "expected.jsonl")]
        command = [*here, *self._reading(), *expected, *self.pipeline.options, *options]
        return subprocess.run(
            command, cwd=self.folder, env=self.variables, check=False
        ).returncode

    def _reading(self) -> list[str]:
        if self.read_command:
            empty = "rm -rf output checkpoint"
            return ["--read-command", self.read_command, "--reset", empty]
        return ["--reader", f"{ENGINES / self.pipeline.reader}:read"]

    def healthy(self) -> list[dict[str, object]]:
        """Empties everything, runs the pipeline once, and gives the rows that came out."""
        if not self.read_command:
            self._in_reader("reset()")
        self._run(shlex.split(self.command))
        if self.read_command:
            said = self._run(shlex.split(self.read_command))
        else:
            said = self._in_reader(f"print(*map(json.dumps, {ROWS}), sep=chr(10))")
        return [json.loads(line) for line in said.splitlines() if line]

    def _in_reader(self, statement: str) -> str:
        module = self.pipeline.reader.removesuffix(".py")
        code = f"import json, sys; sys.path.insert(0, {str(ENGINES)!r}); from {module} import read, reset; {statement}"
        return self._run([sys.executable, "-c", code])

    def _run(self, command: list[str]) -> str:
        """What a command prints. Raises `JobFailed` if it fails, and when it does not end."""
        try:
            return subprocess.run(
                command,
                cwd=self.folder,
                env=self.variables,
                stdout=subprocess.PIPE,
                text=True,
                timeout=HEALTHY_SECONDS,
                check=True,
            ).stdout
        except subprocess.TimeoutExpired:
            why = f"did not end within {HEALTHY_SECONDS} s"
        except subprocess.CalledProcessError as error:
            why = f"ended with exit code {error.returncode}"
        raise JobFailed(
            f"{self.pipeline.name}: {shlex.join(command)} {why}; what it printed stands above."
        )


def pipelines() -> dict[str, Pipeline]:
    """Every pipeline, by name."""
    text = (ENGINES / "engines.toml").read_text(encoding="utf-8")
    return {
        name: Pipeline(
            name,
            **{
                field: tuple(value) if isinstance(value, list) else value
                for field, value in said.items()
            },
        )
        for name, said in tomllib.loads(text).items()
    }


@contextmanager
def prepared(pipeline: Pipeline) -> Iterator[Prepared]:
    """Fetches, installs and starts what the pipeline needs; in the end its servers and its folder are gone."""
    with ExitStack() as stack:
        place = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="pipeline-"))
        )
        work, scratch, settings = (place / name for name in ("work", "tmp", "conf"))
        for folder in (work, scratch, settings):
            folder.mkdir()
        found = jars(pipeline.jars)
        lines = spark_settings(work, scratch, found)
        (settings / "spark-defaults.conf").write_text(lines, encoding="utf-8")
        variables = {
            **os.environ,
            "JAVA_HOME": str(find_java().path.resolve().parent.parent),
            "JAVA_TOOL_OPTIONS": f"{QUICK_START} -Djava.io.tmpdir={scratch}",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(scratch),
            "SPARK_CONF_DIR": str(settings),
            "FLINK_JARS": ";".join(f"file://{jar}" for jar in found),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        for server in pipeline.needs:
            variables |= SERVERS[server](stack)
        yield Prepared(pipeline, work, variables, *_commands(pipeline))


def _commands(pipeline: Pipeline) -> tuple[str, str]:
    command = shlex.join(
        [str(interpreter(pipeline.environment)), str(pipeline.program)]
    )
    if pipeline.read_environment == PROJECT:
        return command, ""
    python, reader = interpreter(pipeline.read_environment), ENGINES / pipeline.reader
    return command, shlex.join([str(python), str(reader)])


def spark_settings(work: Path, scratch: Path, found: list[Path]) -> str:
    """Spark's defaults for a small machine, the jars, and the catalogs of Delta and Iceberg where their jars are."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
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
        catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        settings["spark.sql.catalog.spark_catalog"] = catalog
    if "iceberg-spark" in names:
        settings["spark.sql.catalog.output"] = "org.apache.iceberg.spark.SparkCatalog"
        settings["spark.sql.catalog.output.type"] = "hadoop"
        settings["spark.sql.catalog.output.warehouse"] = str(work / "output")
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def _postgres(stack: ExitStack) -> dict[str, str]:
    """A server on a private Unix socket: psycopg takes PGHOST by itself, JDBC a socket factory."""
    address = stack.enter_context(tethered_postgres()).address
    parts = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    socket = f"{parts['host']}/.s.PGSQL.5432"
    factory = "org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg"
    return {
        "PGHOST": parts["host"],
        "PGUSER": parts["user"],
        "PGDATABASE": parts["dbname"],
        "JDBC_URL": f"jdbc:postgresql://localhost/{parts['dbname']}?socketFactory={factory}&socketFactoryArg={socket}",
    }


def _kafka(stack: ExitStack) -> dict[str, str]:
    return {"KAFKA": stack.enter_context(tethered_kafka()).address}


SERVERS = {"postgres": _postgres, "kafka": _kafka}
"""What a pipeline may need: starts one for as long as the stack lasts, and gives variables that name it."""


def expected_rows() -> list[dict[str, object]]:
    """What should come out of each pipeline."""
    text = (ENGINES / "expected.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def check_healthy(chosen: Prepared) -> int:
    """Runs it once; exits 0 if each row came out once."""
    rows = sorted(chosen.healthy(), key=str)
    if rows == sorted(expected_rows(), key=str):
        print(f"{chosen.pipeline.name}: every row came out once")
        return 0
    print(
        f"{chosen.pipeline.name}: {len(expected_rows())} rows should come out, and these did: {rows}"
    )
    return 1


def listing() -> str:
    """A line for each pipeline."""
    lines = []
    for each in pipelines().values():
        where = "" if each.is_ours else "; installs an environment of its own"
        lines.append(f"{each.name:24} {each.guarantee:14} {each.does}{where}")
    return "\n".join(lines)


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description="Crash a pipeline of a real engine with labkit crashtest.",
        epilog="Other options are handed to labkit crashtest.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="default: list them")
    parser.add_argument(
        "--healthy", action="store_true", help="run once, crash nothing"
    )
    said, others = parser.parse_known_args()
    if said.name is None:
        print(listing())
        return 0
    try:
        with prepared(_named(said.name)) as chosen:
            return check_healthy(chosen) if said.healthy else chosen.crash_test(others)
    except LabError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _named(name: str) -> Pipeline:
    there = pipelines()
    if name not in there:
        raise InvalidInput(
            f"There is no pipeline {name}; there are {', '.join(there)}."
        )
    return there[name]


if __name__ == "__main__":
    sys.exit(main())
