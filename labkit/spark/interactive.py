"""A Spark session for a notebook: quiet, and ended together with the notebook's kernel.

The JVM runs in its own process session, so that interrupting the kernel does not end it. A guard process ends the JVM
and deletes its directory when the kernel is gone, even if it was killed. The JVM's variables do not stay in the
environment, because drivers of crash runs inherit it and must not connect to this JVM.

    python -m labkit.spark.interactive FOLDER PID      the guard
"""

import atexit
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import msgspec

from labkit.core.errors import ServiceUnavailable
from labkit.host.java import java_for_spark
from labkit.host.processes.sessions import empty_session
from labkit.host.processes.tether import serve_tethered, tethered
from labkit.spark.jvm import PROFILES, connect, environment_kept, every_run, start_jvm, worker_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Session = SparkSession
    """The type of a Spark session, for modules that must not import PySpark themselves."""

CORES = 2
"""The number of the session's threads, and of shuffle partitions: the smallest number that shows parallel work."""

ATTEMPTS = 2
"""How often a task is tried before its query fails. Spark's own default is 1 with local threads, and 4 on a cluster."""

_END_SECONDS = 30.0


class Watching(msgspec.Struct, frozen=True):
    """The first message of a guard, a process that ends a JVM after the notebook's kernel has ended.

    `jvm` is the process id of the JVM.
    """

    jvm: int


def interactive_session() -> "SparkSession":
    """Return the Spark session of this process; the first call starts a JVM.

    After `spark.stop()`, the next call starts a new session in the same JVM. Raises `ServiceUnavailable` if there is no
    usable Java, or if the JVM has ended.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:  # noqa: SLF001 - otherwise the user's own session is returned
        process, scratch = _engine()
        if process.poll() is not None:
            raise ServiceUnavailable("Spark has ended in this kernel. Restart the kernel, and run the cells again.")
        with environment_kept():
            os.environ.update(worker_settings(scratch))
            return SparkSession.builder.getOrCreate()
    return SparkSession.builder.getOrCreate()


@cache
def _engine() -> "tuple[subprocess.Popen[bytes], Path]":
    """Start the JVM of this process, once; return it and its folder."""
    java, kept = java_for_spark(), ExitStack()
    scratch = Path(mkdtemp(prefix="labkit-spark-"))
    kept.callback(shutil.rmtree, scratch, ignore_errors=True)
    try:
        with (scratch / "spark.log").open("wb") as log, environment_kept():
            process = start_jvm(
                java,
                scratch,
                PROFILES["small"].without_forks(),
                every_run(f"local[{CORES},{ATTEMPTS}]", scratch, CORES),
                log,
                apart=True,
            )
            kept.callback(empty_session, process.pid, _END_SECONDS)
            kept.enter_context(tethered(Watching, __name__, str(scratch), str(process.pid)))
            connect(process, scratch, java)
    except BaseException:
        kept.close()
        raise
    # An interpreter that ends normally waits here until Spark has ended, so that no process or file is left.
    atexit.register(kept.close)
    return process, scratch


def main(folder: str, jvm: str) -> None:
    """Guard a notebook's JVM: when the kernel has ended, end the process `jvm` and delete its directory `folder`."""

    def end() -> None:
        empty_session(int(jvm), _END_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)

    serve_tethered(lambda: Watching(int(jvm)), end)


if __name__ == "__main__":
    main(*sys.argv[1:])
