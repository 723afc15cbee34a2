"""Make a class-data archive (CDS), from which later JVMs start faster, in a driver that runs a few small queries.

Switch: `archive` in LABKIT_FAST. A first commit comes after 6.0 s with an archive and 10.2 s without (quiet machine,
two cores).

A JVM writes its archive only when it ends by itself, whereas the lab kills its drivers; so a special driver makes it,
under a supervisor like the others. The archive gets its final name by one rename when it is complete. The process that
makes it holds a lock, so that no other process repeats the work. It first deletes the unfinished file of a process that
was killed.
"""

import fcntl
import subprocess
import sys
import tempfile
from pathlib import Path

from labkit.core.errors import ServiceUnavailable
from labkit.core.words import telling_line
from labkit.host.class_data import archive_path, find_archive, keep, spark_jars
from labkit.host.java import Java, java_for_spark
from labkit.host.processes import wire
from labkit.host.processes.child import SupervisedDriver
from labkit.host.processes.events import AwaitsKill, DriverFailed, Killed
from labkit.host.processes.protocol import Launch
from labkit.spark.options import PARTITIONS, Job

PATIENCE = 600.0
"""Seconds without an event after which the supervisor ends the driver that makes the archive."""


def make_archive() -> Path:
    """Return the path of the class-data archive (CDS) for this Java and PySpark; create the archive if necessary.

    Raises `ServiceUnavailable` if the archive cannot be created.
    """
    java = java_for_spark()
    archive = find_archive(java)
    if archive is not None:
        return archive
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "driver.log"
        launch = Launch(module=__name__, scratch=str(Path(folder) / "scratch"), log=str(log), task=wire.raw(None))
        with SupervisedDriver(launch, PATIENCE) as driver:
            events = list(driver.events())
        failures = [one.because for one in events if isinstance(one, DriverFailed)]
        archive = find_archive(java)
        if archive is None or failures or not isinstance(events[-1], Killed):
            because = (
                failures[0]
                if failures
                else f"the driver ended without being killed; its last words: {_last_words(log)}"
            )
            raise ServiceUnavailable(
                f"No class-data archive could be made ({because}); everything works without an archive, only some "
                "seconds slower."
            )
        return archive


def _last_words(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return telling_line(text) or "it printed nothing"


def write_archive(scratch: Path) -> None:
    """Write the class-data archive (CDS) of the JVM, unless another process has just written it.

    Call this in a driver that does nothing else. `scratch` is the driver's directory for temporary files.
    """
    java = java_for_spark()
    path = archive_path(java)
    if path is None:
        raise ServiceUnavailable("there is no cache folder, because neither HOME nor XDG_CACHE_HOME is set")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (path.parent / "archive.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # A killed process has left its unfinished file and released the lock.
        for left in path.parent.glob("*.part"):
            left.unlink(missing_ok=True)
        if find_archive(java) is not None:
            return
        unfinished = path.with_suffix(".part")
        try:
            _record(java, scratch, unfinished)
            _check(java, unfinished)
            keep(path, unfinished)
        finally:
            unfinished.unlink(missing_ok=True)


def _record(java: Java, scratch: Path, unfinished: Path) -> None:
    from labkit.spark.fast.warm import warm_up
    from labkit.spark.jvm import PROFILES, connect, every_run, start_jvm

    settings = every_run(f"local[{2 * (PARTITIONS + 1)}]", scratch, PARTITIONS)
    options = [f"-XX:ArchiveClassesAtExit={unfinished}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    jvm = start_jvm(java, scratch, PROFILES["small"].extended(options), settings, sys.stderr.buffer)
    spark = connect(jvm, scratch, java)
    for job in (Job.RUNNING, Job.TOTALS):
        warm_up(spark, job, scratch)
    spark.stop()
    assert jvm.stdin is not None
    # The JVM writes the archive when it ends by itself, which it does when this pipe closes.
    jvm.stdin.close()
    jvm.wait()


def _check(java: Java, unfinished: Path) -> None:
    strictly = ["-Xshare:on", f"-XX:SharedArchiveFile={unfinished}", "-XX:+VerifySharedSpaces"]
    command = [str(java.path), *strictly, *java.flags, "-cp", str(spark_jars() / "*"), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise ServiceUnavailable(
            f"Java cannot use the archive that it wrote: {lines[-1] if lines else 'it printed nothing'}"
        )


def run(launch: Launch) -> None:
    """Write the class-data archive, then wait for the supervisor to kill this driver."""
    from labkit.host.processes.supervised import report

    try:
        write_archive(Path(launch.scratch))
    except OSError as error:
        raise ServiceUnavailable(str(error)) from error
    report(AwaitsKill())


if __name__ == "__main__":
    from labkit.host.processes.supervised import serve

    serve(run)
