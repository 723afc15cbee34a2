"""Check the options `--master` (where Spark runs tasks) and `--victim` (which process is killed) before a run."""

import re
from collections.abc import Sequence
from enum import StrEnum
from urllib.parse import urlsplit

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import IN_TASK, Crash

_MASTER = re.compile(r"spark://[^\s,:/]+:\d+(,[^\s,:/]+:\d+)*|local-cluster\[(?P<number>\d+),(?P<cores>\d+),\d+\]")
_THREADS = re.compile(r"local(\[([1-9]\d*|\*)(,[1-9]\d*)?\])?")


def check_scheduler(master: str) -> None:
    """Raise `InvalidInput` unless the master URL stands for local threads, such as `local[4]`, or for a cluster."""
    if not _THREADS.fullmatch(master) and not _MASTER.fullmatch(master):
        raise InvalidInput(
            f"--master {master[:80]}: labkit does not support this master; write local[4] for threads of this machine, "
            "or spark://HOST:PORT for a cluster."
        )


class Victim(StrEnum):
    """The value of the option `--victim`: which processes are killed at a failpoint."""

    DRIVER = "driver"
    """Every process of the driver's session; another driver continues from the checkpoint."""
    EXECUTOR = "executor"
    """The executor whose task reached the failpoint, with its Python processes; Spark retries the task elsewhere."""


def is_local(master: str) -> bool:
    """Return whether the master runs tasks in threads of the driver. For `local-cluster[...]` the result is False."""
    return master == "local" or master.startswith("local[")


def is_loopback(master: str) -> bool:
    """Return whether all processes of a job with this master URL run on this host."""
    if not master.startswith("spark://"):
        return True
    hosts = {urlsplit(f"spark://{place}").hostname for place in master.removeprefix("spark://").split(",")}
    return hosts <= {"127.0.0.1", "localhost"}


def retries(master: str) -> bool:
    """Return whether Spark retries failed tasks with this master: on a cluster, or with `local[THREADS,FAILURES]`."""
    return not is_local(master) or "," in master


def check_master(master: str, crashes: Sequence[Crash], slots: int) -> None:
    """Raise `InvalidInput` if labkit does not support the master URL, or if a `local-cluster` is too small for a crash.

    A crash inside a task needs `slots` tasks that run at the same time. The size of any other cluster is unknown before
    its executors have registered, so this function does not check it.
    """
    cluster = _MASTER.fullmatch(master)
    if cluster is None:
        raise InvalidInput(
            f"--master {master[:80]}: labkit does not support this cluster; write spark://HOST:PORT or "
            "local-cluster[EXECUTORS,CORES,MEGABYTES], or leave --master out to run tasks in threads of the driver."
        )
    if cluster["number"] is not None and any(crash.point.in_task for crash in crashes):
        there = int(cluster["number"]) * int(cluster["cores"])
        if there < slots:
            raise InvalidInput(f"--master {master} has too few task slots: {too_few(there, slots)}.")


def too_few(there: int, needed: int) -> str:
    """Return the end of an error message for a master that can run `there` tasks at once, fewer than `needed`."""
    return (
        f"it can run {there} task(s) at once and {needed} are needed, because all tasks of a batch must run "
        "at once if the failpoint is in a task; add executors or cores, or name a failpoint outside of tasks"
    )


def check_victim(victim: Victim, master: str | None, crashes: Sequence[Crash], *, in_tasks: bool) -> None:
    """Raise `InvalidInput` if the victim is an executor, but this run cannot kill an executor as planned.

    The run needs a `master` with executors, tasks that write the rows (`in_tasks`), and exactly one planned crash,
    which must be inside a task.
    """
    if victim is Victim.DRIVER:
        return
    if master is None:
        raise InvalidInput(
            "--victim executor: without --master the driver is its own executor; add a --master with executors."
        )
    if not in_tasks:
        raise InvalidInput(
            "--victim executor: with this job and sink, the driver writes the rows, not an executor; use --job running "
            "and a --sink whose rows the executors write."
        )
    if len(crashes) != 1 or not crashes[0].point.in_task:
        raise InvalidInput(
            f"--victim executor: name exactly one --crash, at a failpoint inside a task: {', '.join(sorted(IN_TASK))}."
        )
