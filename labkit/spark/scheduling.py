"""Run commands as Spark tasks, one task per command, for example the shards of a grading.

Spark runs a command again if its executor dies, so a command must be safe to run twice, even at the same time, and must
store its results itself.
"""

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from labkit.core.errors import JobFailed
from labkit.host.processes import ENDS_WITH_PARENT
from labkit.spark.cluster import await_slots
from labkit.spark.master import is_local
from labkit.spark.session import start_session

LONGEST_MESSAGE = 2000
"""The number of characters, from the end of a failed command's output, that the error message contains."""


class Task(NamedTuple):
    """A command (a list of words) to run as one Spark task. In it, `{attempt}` is replaced by the attempt number."""

    words: tuple[str, ...]
    fine: tuple[int, ...] = (0,)
    """The exit codes that count as success."""


def run_each(master: str, tasks: Sequence[Task], scratch: Path) -> list[int]:
    """Run each command as one task of a Spark job on `master`, and return the exit codes in the order of `tasks`.

    `scratch` is for the driver's temporary files. Raises `JobFailed` if a command fails so often that Spark stops the
    job: spark.task.maxFailures times on a cluster, once with a master such as `local[4]`. Raises `ServiceUnavailable`
    if there is no Java, or no free slot on the cluster.
    """
    from py4j.protocol import Py4JJavaError

    with (scratch / "driver.log").open("wb") as log:
        profile = "bulk" if is_local(master) else "cluster"
        spark = start_session(master, scratch, 1, log, profile)
        try:
            if not is_local(master):
                await_slots(spark, 1)
            context = spark.sparkContext
            codes: list[int] = context.parallelize(list(tasks), len(tasks)).mapPartitions(_each).collect()
        except Py4JJavaError as error:
            raise JobFailed(_reason(str(error.java_exception))) from None
        finally:
            spark.stop()
    return codes


def _each(tasks: Iterable[Task]) -> Iterable[int]:
    from pyspark import TaskContext

    context = TaskContext.get()
    attempt = 0 if context is None else context.attemptNumber()
    for words, fine in tasks:
        yield _run([word.replace("{attempt}", str(attempt)) for word in words], fine)


def _run(words: list[str], fine: tuple[int, ...]) -> int:
    """Run a command and return its exit code. If this process dies, the command ends too.

    Raises `RuntimeError` if the exit code is not in `fine`.
    """
    done = subprocess.run(
        words,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, ENDS_WITH_PARENT: "yes"},
    )
    if done.returncode not in fine:
        raise RuntimeError(
            f"the command {words[0]} ended with exit code {done.returncode}: {done.stdout[-LONGEST_MESSAGE:].strip()}"
        )
    return done.returncode


def _reason(text: str) -> str:
    """Find the message of the `RuntimeError` from `_run` in Spark's error text, and return it as a sentence."""
    errors = [line.strip() for line in text.splitlines() if "RuntimeError: " in line]
    last = errors[0].partition("RuntimeError: ")[2] if errors else text.splitlines()[0]
    return f"A task of the Spark job failed: {last}"
