"""Start and end the lab's Spark sessions, with the settings of a profile and, where allowed, a faster start."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from labkit.core.errors import JobFailed
from labkit.host.fast_start import fast_start
from labkit.host.java import Java, find_java
from labkit.host.servers.kafka_jars import CONNECTOR
from labkit.host.servers.spark_cluster import linked_home
from labkit.spark import cluster
from labkit.spark.fast.zygote import interpreter
from labkit.spark.jvm import (
    PROFILES,
    Profile,
    connect,
    environment_kept,
    every_run,
    own_interpreter,
    python_path,
    start_jvm,
    use_archive,
)
from labkit.spark.master import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

END_PATIENCE = 30.0
"""Seconds within which a JVM must end by itself when its session has stopped; then it is killed."""


def start_session(
    master: str,
    scratch: Path,
    partitions: int,
    log: IO[bytes],
    profile: str | Profile = "small",
    *,
    archive: bool = True,
) -> "SparkSession":
    """Start a Spark session in a new JVM, with its temporary files in `scratch` and its output in `log`.

    `partitions` is the number of shuffle partitions. `profile` is a `Profile`, its name in `PROFILES`, or `stock`
    for PySpark's own launcher and settings. `archive` allows the use of the class-data archive for a faster start.
    Raises `ServiceUnavailable` if there is no usable Java, or if the JVM does not start Spark.
    """
    if profile == "stock":
        return _stock_session(find_java(), master, scratch, partitions)
    return _started(master, scratch, partitions, log, profile, archive=archive)[1]


@contextmanager
def session_for_a_block(
    master: str, scratch: Path, partitions: int, log: IO[bytes], profile: str | Profile
) -> Iterator["SparkSession"]:
    """Start a session for a `with` block as `start_session` does; Ctrl-C in a terminal does not reach its JVM."""
    with environment_kept():
        process, spark = _started(master, scratch, partitions, log, profile, apart=True)
        try:
            yield spark
        finally:
            _end(process, spark)


@contextmanager
def failures_in_one_sentence(what: str) -> Iterator[None]:
    """Turn an error of the JVM in a `with` block into a `JobFailed` with one sentence, which begins with `what`."""
    from py4j.protocol import Py4JError

    try:
        yield
    except Py4JError as error:
        lines = str(getattr(error, "java_exception", error)).strip().splitlines()
        raise JobFailed(f"{what}: {lines[0] if lines else 'no reason was given'}") from None


def _end(process: "subprocess.Popen[bytes]", spark: "SparkSession") -> None:
    """Stop a session, end its JVM, and reset PySpark, so that another session can start."""
    context = type(spark.sparkContext)
    with suppress(Exception):  # a dead JVM cannot be asked to stop
        spark.stop()
    gateway: Any = context._gateway  # noqa: SLF001 - no public name
    with suppress(Exception):
        gateway.shutdown()
    context._gateway = context._jvm = None  # noqa: SLF001 - neither has a public name
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(END_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _started(
    master: str,
    scratch: Path,
    partitions: int,
    log: IO[bytes],
    profile: str | Profile,
    *,
    archive: bool = True,
    apart: bool = False,
) -> "tuple[subprocess.Popen[bytes], SparkSession]":
    allowed, java = fast_start(), find_java()
    # Executors are started from SPARK_HOME, so there must be jars in it.
    if not is_local(master):
        os.environ.update(linked_home(scratch))
    wanted = PROFILES[profile] if isinstance(profile, str) else profile
    of_executors = cluster.executors(master, java, python_path(), wanted.executors)
    configuration = every_run(master, scratch, partitions) | of_executors
    chosen = wanted if allowed.zygote else wanted.without_forks()
    if archive and allowed.archive:
        chosen = chosen.extended(use_archive(java))
    if chosen.connector:
        configuration["spark.jars"] = ",".join(map(str, sorted(CONNECTOR.find(java).glob("*.jar"))))
    python = interpreter(scratch) if chosen.forks and is_local(master) else {}
    if is_local(master) and not python:  # executors on other machines work in their own folders
        python = own_interpreter(scratch)
    process = start_jvm(java, scratch, chosen, configuration, log, python=python, apart=apart)
    return process, connect(process, scratch, java, python)


def _stock_session(java: Java, master: str, scratch: Path, partitions: int) -> "SparkSession":
    """Start a session with PySpark's own launcher and settings, to compare its speed with the lab's own sessions."""
    os.environ |= {"JAVA_HOME": str(java.path.resolve().parents[1]), "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(scratch), "PYTHONPATH": python_path()}
    from pyspark.sql import SparkSession

    temporary = f"-Djava.io.tmpdir={scratch} -XX:-UsePerfData"
    builder = SparkSession.builder.master(master).config("spark.driver.extraJavaOptions", temporary)
    return builder.config("spark.sql.shuffle.partitions", str(partitions)).getOrCreate()
