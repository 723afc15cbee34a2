"""Where a job's tasks run, as Spark's `--master` says it, and who may be killed there; checked before anything starts.

This module must not start anything, nor know how a cluster is reached.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from urllib.parse import urlsplit

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import IN_TASK, Crash

_MASTER = re.compile(r"spark://[^\s,:/]+:\d+(,[^\s,:/]+:\d+)*|local-cluster\[(?P<number>\d+),(?P<cores>\d+),\d+\]")


_THREADS = re.compile(r"local(\[([1-9]\d*|\*)(,[1-9]\d*)?\])?")


def check_scheduler(master: str) -> None:
    """Refuses what is no place for tasks: threads of the driver, or a cluster. Raises `InvalidInput`."""
    if not _THREADS.fullmatch(master) and not _MASTER.fullmatch(master):
        raise InvalidInput(
            f"--master {master[:80]}: write local[4] for threads of this machine, or spark://HOST:PORT for a cluster."
        )


class Victim(StrEnum):
    """Which processes are killed at a failpoint."""

    DRIVER = "driver"
    """Every process of the driver's session; another driver goes on from the checkpoint."""
    EXECUTOR = "executor"
    """The executor whose task is there, with its Python processes; the driver lives, and Spark tries the task again."""


def is_local(master: str) -> bool:
    """Whether tasks run in threads of the driver. With `local-cluster[...]` they do not: it starts processes."""
    return master == "local" or master.startswith("local[")


def is_loopback(master: str) -> bool:
    """Whether every process of the job runs on this host."""
    if not master.startswith("spark://"):
        return True
    hosts = {urlsplit(f"spark://{place}").hostname for place in master.removeprefix("spark://").split(",")}
    return hosts <= {"127.0.0.1", "localhost"}


def retries(master: str) -> bool:
    """Whether Spark runs a failed task again. With threads it does not, except as `local[threads, failures]`."""
    return not is_local(master) or "," in master


def check_master(master: str, crashes: Sequence[Crash], slots: int) -> None:
    """Refuses what is no cluster's master, and one too small for a point in a task. Raises `InvalidInput`.

    `slots` is how many tasks have to run at once while such a point is armed. How large a standalone cluster is shows
    only when its executors have come.
    """
    cluster = _MASTER.fullmatch(master)
    if cluster is None:
        raise InvalidInput(
            f"--master {master[:80]}: write spark://HOST:PORT, or local-cluster[EXECUTORS,CORES,MEGABYTES]; "
            "leave it out for threads of the driver."
        )
    if cluster["number"] is not None and any(crash.point.in_task for crash in crashes):
        there = int(cluster["number"]) * int(cluster["cores"])
        if there < slots:
            raise InvalidInput(f"--master {master}: {too_few(there, slots)}.")


def too_few(there: int, needed: int) -> str:
    """The end of the sentence that refuses a master with too few slots; it says what to do."""
    return (
        f"it can run {there} task(s) at once and {needed} are needed: while a point in a task is armed, all tasks of "
        "its batch have to run together; add executors or cores, or name a point outside of tasks"
    )


def check_victim(victim: Victim, master: str | None, crashes: Sequence[Crash], *, in_tasks: bool) -> None:
    """An executor can be killed where it is a process of its own, and one of its tasks can be told to wait.

    `in_tasks`: whether job and sink write in tasks. Raises `InvalidInput`.
    """
    if victim is Victim.DRIVER:
        return
    if master is None:
        raise InvalidInput("--victim executor: without --master the driver is its own executor; name a cluster's.")
    if not in_tasks:
        raise InvalidInput("--victim executor: this job or sink writes in the driver; use running and another sink.")
    if len(crashes) != 1 or not crashes[0].point.in_task:
        raise InvalidInput(f"--victim executor: name one --crash at a point in a task: {', '.join(sorted(IN_TASK))}.")
