"""Start the JVM of a driver directly, with settings for small runs or for bulk, and connect a Spark session to it.

PySpark's launcher script starts a second JVM and polls; here the JVM starts at once while Python imports pyspark. The
settings that make three records fast make five million slow (only the quick compiler C1, no code generation), so a bulk
run gets none of them.
"""

import os
import shlex
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from labkit.core.errors import ServiceUnavailable
from labkit.host.class_data import USED, find_archive, spark_jars
from labkit.host.java import Java
from labkit.host.processes.own_python import own_python
from labkit.spark import cluster
from labkit.spark.master import is_loopback

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_PATIENCE = 120.0
"""Seconds within which a JVM must have started Spark."""

_OPEN_PACKAGES = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
]
"""The packages that Spark's own launcher opens (org.apache.spark.launcher.JavaModuleOptions)."""

_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
logger.manager.name = org.apache.spark.sql.execution.datasources.v2.python
logger.manager.level = error
logger.sources.name = org.apache.spark.sql.execution.datasources.DataSourceManager
logger.sources.level = error
logger.states.name = org.apache.spark.sql.execution.python.streaming
logger.states.level = error
logger.resolve.name = org.apache.spark.sql.execution.streaming
logger.resolve.level = error
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""
"""The JVM's logging settings: it prints warnings to its standard error, except those that every run produces."""

_EVERY_RUN = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.log.structuredLogging.enabled": "false",
}
"""The configuration of every driver: no web page, and no batch when there is no new data."""

NO_ZYGOTE: Mapping[str, str] = {}
"""An empty set of environment variables, with which Spark starts a new interpreter for each of its Python processes."""

_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""The configuration with which only this host can reach the driver; used unless executors may be on other hosts."""


@dataclass(frozen=True)
class Profile:
    """A set of JVM options and Spark properties for a driver, for one purpose such as a fast start."""

    options: tuple[str, ...]
    configuration: dict[str, str]
    forks: bool = False
    """Whether Spark's Python processes are forked from a zygote, a process that has imported slow modules."""
    executors: tuple[str, ...] = ()
    """The JVM options of executors on a cluster."""
    connector: bool = False
    """Whether Spark gets the jars of its Kafka source, which PySpark does not contain."""

    def extended(self, options: Sequence[str]) -> "Profile":
        """Return a copy of this profile with additional JVM options."""
        return replace(self, options=(*options, *self.options))

    def without_forks(self) -> "Profile":
        """Return a copy of this profile with `forks` off: Spark starts each Python process anew."""
        others = {name: value for name, value in self.configuration.items() if value != _FAST_DAEMON}
        return replace(self, configuration=others, forks=False)


_FAST_DAEMON = "labkit.spark.fast.daemon"
_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.daemon.module": _FAST_DAEMON,
}
_NO_CHECKSUMS = {"spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs"}
"""The configuration with which Hadoop writes no checksum file (.crc) for each file of a checkpoint.

Hadoop starts a readlink and a chmod for every file that it creates, and those for the .crc files take an eighth of a
small run. In all else, `RawLocalFs` works like Spark's own choice: it renames files, and refuses an existing name.
"""

_EMPTY_ON_START = "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart"
"""The property by which Spark refuses a checkpoint that has files but no `offsets/0` (since 4.2,
MicroBatchExecution.verifyNewCheckpointDirectory). It would refuse every restart after a crash just before the rename to
`offsets/0`, which leaves a temporary file.
"""

_LIGHT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""The options of a short-lived JVM, which gains nothing from a second compiler or a parallel garbage collector."""

PROFILES = {
    "small": Profile((*_LIGHT, "-Xmx1g"), _SMALL | _NO_CHECKSUMS, forks=True),
    "bulk": Profile(("-Xmx2g",), {}),
    "cluster": Profile((*_LIGHT, "-Xmx1g"), {}, executors=_LIGHT),
}
PROFILES["kafka"] = replace(PROFILES["small"], connector=True)
PROFILES["crashtest"] = replace(
    PROFILES["small"], configuration=_SMALL | {"spark.sql.files.minPartitionNum": "2", _EMPTY_ON_START: "false"}
).without_forks()
"""The JVM setups by name.

`small`: a few records, quick to start. `bulk`: Spark's own settings, for throughput. `cluster`: a few records on
executors, with Spark's own configuration, which executors share. `kafka`: `small` with Spark's Kafka source.
`crashtest`: for a user's own sink; unlike `small`, it has Spark's own Python daemon and checkpoints with checksums,
reads two small files as two partitions, and accepts a checkpoint whose first batch was never planned.
"""


def use_archive(java: Java) -> list[str]:
    """Return the JVM options that load the class-data archive (CDS) for a faster start; [] without an archive."""
    archive = find_archive(java)
    return [] if archive is None else [f"-XX:SharedArchiveFile={archive}", *USED]


def start_jvm(
    java: Java,
    scratch: Path,
    profile: Profile,
    configuration: dict[str, str],
    log: IO[bytes],
    *,
    python: Mapping[str, str] = NO_ZYGOTE,
    apart: bool = False,
) -> "subprocess.Popen[bytes]":
    """Start a JVM in which Spark will run, and return its process; then call `connect` to get the Spark session.

    The JVM ends by itself when its standard input closes. `scratch` is its directory for temporary files, and `log`
    receives its output. `profile` has the JVM's options, and both `profile` and `configuration` have Spark properties.
    `python` are environment variables that tell Spark which Python to start. With `apart` the JVM gets its own process
    session, so that Ctrl-C in a terminal does not reach it.
    """
    command, environment = (_command(java, scratch, profile, configuration), {**_environment(scratch), **python})
    # Otherwise Spark looks up the host's name, which may resolve to an address that nothing can reach.
    if "spark.driver.host" in configuration:
        environment["SPARK_LOCAL_IP"] = configuration["spark.driver.host"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=apart
    )


def connect(
    process: "subprocess.Popen[bytes]", scratch: Path, java: Java, python: Mapping[str, str] = NO_ZYGOTE
) -> "SparkSession":
    """Wait until Spark runs in the JVM `process`, which `start_jvm` has returned, and return a Spark session in it.

    `scratch`, `java` and `python` are the arguments of that call. Raises `ServiceUnavailable` if Spark does not start.
    """
    os.environ.update({**worker_settings(scratch), **python})
    from pyspark.sql import SparkSession  # imported while the JVM starts

    _spare_numpy()
    port, secret = _await_connection(scratch / "connection", process, java)
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = (str(port), secret)
    return SparkSession.builder.getOrCreate()


@cache
def _spare_numpy() -> None:
    """Keep PySpark from importing NumPy, pandas and PyArrow at its first call to the JVM, which would take 0.3 s.

    PySpark's converters for NumPy values import these packages (through `pyspark.testing.utils`) when the converters
    look at the first argument of a call. This function makes the converters ignore all arguments until other code has
    imported NumPy. Before that import, no argument can be a NumPy value.
    """
    from pyspark.sql import types

    for name in ("NumpyScalarConverter", "NumpyArrayConverter"):  # private names of PySpark, so they may be missing
        if converter := getattr(types, name, None):
            converter.can_convert = _if_numpy_is_there(converter.can_convert)


def _if_numpy_is_there(can_convert: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda self, value: "numpy" in sys.modules and can_convert(self, value)


def every_run(master: str, scratch: Path, partitions: int) -> dict[str, str]:
    """Return the Spark properties that are the same for all drivers.

    `partitions` is the number of shuffle partitions, and `scratch` the folder for temporary files.
    """
    return {
        **_EVERY_RUN,
        **(_LOOPBACK if is_loopback(master) else {}),
        "spark.master": master,
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }


def _command(java: Java, scratch: Path, profile: Profile, configuration: dict[str, str]) -> list[str]:
    """Write the JVM's configuration files to `scratch`, and return the command that starts the JVM."""
    (scratch / "home").mkdir(parents=True, exist_ok=True)
    logging = scratch / "log4j2.properties"
    logging.write_text(_LOGGING, encoding="utf-8")
    options = [*profile.options, "-XX:-UsePerfData", f"-Djava.io.tmpdir={scratch}"]
    options += [f"-Dlog4j2.configurationFile={logging.absolute().as_uri()}"]
    options += ["-Djdk.reflect.useDirectMethodHandle=false", "-Dio.netty.tryReflectionSetAccessible=true"]
    options += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPEN_PACKAGES]
    properties = scratch / "spark.properties"
    with os.fdopen(
        # The configuration may contain a server's password, which everybody could read on a command line, or in a file
        # with the default mode.
        os.open(properties, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        "w",
        encoding="ascii",
    ) as file:
        file.write(cluster.to_properties(configuration | profile.configuration))
    # The class path has no folder of this run, because a class-data archive works only for JVMs with equal class paths.
    submit = ["-cp", str(spark_jars() / "*"), "org.apache.spark.deploy.SparkSubmit"]
    return [str(java.path), *options, *java.flags, *submit, "--properties-file", str(properties), "pyspark-shell"]


def worker_settings(scratch: Path) -> dict[str, str]:
    """Return environment variables with which Spark's Python processes import the installed, compiled PySpark.

    They set SPARK_HOME to an empty directory below `scratch`, because otherwise the processes would import PySpark from
    a zip file.
    """
    return {
        "SPARK_HOME": str(scratch / "home"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONNECT_MODE": "0",
    }


@contextmanager
def environment_kept() -> Iterator[None]:
    """Restore all environment variables after a `with` block."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _environment(scratch: Path) -> dict[str, str]:
    environment = dict(os.environ) | worker_settings(scratch)
    environment["_PYSPARK_DRIVER_CONN_INFO_PATH"] = str(scratch / "connection")
    # A killed JVM leaves its temporary files, so they must lie in the driver's directory, which is deleted later.
    environment["TMPDIR"] = str(scratch)
    # Not the setting `spark.local.dir`, because Spark then warns in every run that this variable may override it.
    environment["SPARK_LOCAL_DIRS"] = str(scratch)
    environment["PYTHONPATH"] = python_path()
    # A JVM with such options reports them on its standard error, and may have another heap or agent than the profile
    # requests.
    environment.pop("JAVA_TOOL_OPTIONS", None)
    return environment


def own_interpreter(scratch: Path, command: Sequence[str] = tuple(own_python())) -> dict[str, str]:
    """Return environment variables with which Spark starts its Python processes by the command `command`.

    The default command keeps Python from importing modules from the working directory. It has arguments, but Spark
    accepts only the path of a program, so this function writes a script with the command to `scratch`.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    program = scratch / "python"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return {"PYSPARK_PYTHON": str(program), "PYSPARK_DRIVER_PYTHON": str(program)}


def python_path() -> str:
    """Return a PYTHONPATH for Spark's Python processes: the directory of the lab and this process's own PYTHONPATH."""
    return os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))


def _await_connection(path: Path, process: "subprocess.Popen[bytes]", java: Java) -> tuple[int, str]:
    """Wait until the JVM has written its Py4J port and secret to the file `path`; return (port, secret)."""
    end = time.monotonic() + START_PATIENCE
    while not path.exists():
        if process.poll() is not None:
            raise ServiceUnavailable(
                f"{java.path} (Java {java.version}) could not start Spark and ended with exit code "
                f"{process.returncode}; see the driver's log."
            )
        if time.monotonic() > end:
            raise ServiceUnavailable(
                f"{java.path} did not start Spark within {START_PATIENCE:.0f} s; see the driver's log."
            )
        time.sleep(0.02)
    content = path.read_bytes()
    port, length = struct.unpack(">ii", content[:8])
    return port, content[8 : 8 + length].decode()
