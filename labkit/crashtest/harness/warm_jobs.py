"""Keeps plain jobs with a warm Spark session, for the starts in a sink's crash test.

A start of Spark takes several times as long as the run of a small job, and runs no code of the user. So Spark processes
start ahead of time and wait (`labkit.crashtest.harness.plain_job`, `wait`), and each start of the test lets one go on.
If a job ended and left nothing in its session, the next run begins there, so that each kill costs one start of Spark.
"""

import os
import shlex
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from labkit.core.errors import JobFailed
from labkit.core.words import telling_line
from labkit.crashtest.harness.leftovers import MARK, end, marked_processes
from labkit.crashtest.harness.plain_job import DONE, GO, READY, Go
from labkit.host.cores import cores
from labkit.host.processes import wire
from labkit.host.processes.own_python import own_python
from labkit.host.syscalls.ahead import Ahead
from labkit.host.syscalls.calls import WatchedRun, Watcher

BYTES = 1_300_000_000
"""The memory that one session needs with its workers, in bytes."""

RESERVED = 3
"""The number of sessions for which memory is kept free: the running one, the next one, and one for other needs."""

START_SECONDS = 300.0
"""The seconds after which a Spark process that is not ready has failed."""
_POLL = 0.02


def at_once() -> int:
    """Return how many Spark sessions may start at the same time, given the machine's free memory and cores."""
    return max(1, min(cores(), psutil.virtual_memory().available // BYTES - RESERVED))


class WarmJob:
    """One Spark process that was started ahead of time, with a folder of its own, and waits for a job to run."""

    def __init__(self, job: Path, place: Path, folder: Path, environment: Mapping[str, str]) -> None:
        """Start the process in `folder`, for the job that the file `job` describes.

        `place` is a new folder for the process's log and for the files by which labkit tells the process what to run.
        """
        place.mkdir(parents=True)
        self._place, self.log = place, place / "log.txt"
        # A mark of its own, because the test kills every process with the test's mark after each run, and this process
        # waits for a later run.
        self._mark = uuid.uuid4().hex
        words = own_python("-B", "-m", "labkit.crashtest.harness.plain_job", "wait", str(job), str(place))
        self.ahead = Ahead(words, folder=folder, environment={**environment, MARK: self._mark}, output=self.log)

    def await_ready(self) -> None:
        """Wait until Spark has started. Raises `JobFailed`, with an error from the log, if Spark does not start."""
        finish = time.monotonic() + START_SECONDS
        while not (self._place / READY).exists():
            if self.ahead.has_ended or time.monotonic() > finish:
                first_error = telling_line(self.log.read_text(encoding="utf-8", errors="replace"))
                within_time = "" if self.ahead.has_ended else f" within {START_SECONDS:.0f} s"
                raise JobFailed(
                    f"Spark could not be started for the sink{within_time}; its log says {first_error[:200]!r}"
                )
            time.sleep(_POLL)

    def go(self, order: Go) -> None:
        """Let the waiting process run the job that `order` names."""
        path = self._place / "order"
        path.write_bytes(wire.encode(order))
        path.rename(self._place / GO)

    def end_log(self, output: Path) -> None:
        """Copy the log to the file `output`, and empty the log for the next job."""
        shutil.copyfile(self.log, output)
        os.truncate(self.log, 0)

    def is_done(self) -> bool:
        """Return whether the job has ended; for each job, only the first call after its end returns True."""
        done = self._place / DONE
        if not done.exists():
            return False
        done.unlink()
        return True

    def close(self) -> None:
        """Kill the process if it still runs, and remove its folder."""
        self.ahead.close()
        end(marked_processes(self._mark))
        shutil.rmtree(self._place, ignore_errors=True)


class WarmJobs:
    """A pool of Spark processes that are started ahead of time and wait until a crash test needs them."""

    def __init__(self, job: Path, place: Path, most: int) -> None:
        """Prepare a pool for the job in the file `job`, with folders in `place`; `most` sessions may wait at a time."""
        self._job, self._place, self._most = job, place, most
        self._waiting: list[WarmJob] = []
        self._kept: WarmJob | None = None
        """A session in which a job has ended and left nothing."""
        self._count = 0

    def start_one(self, folder: Path) -> None:
        """Start the first Spark process in the working folder `folder`, while labkit still prepares the first run."""
        self._fill(1, folder, os.environ)

    def no_more(self) -> None:
        """Start no further sessions in advance, because the test's last run begins."""
        self._most = 0

    def starter(self, *, is_first: bool, exits: bool) -> Watcher:
        """Return a function that makes a waiting Spark process run the job, and that watches the job's system calls.

        The first start of a run (`is_first`) may reuse a process in which another job has ended. A restart after a
        crash gets a new process, because nothing may be left in memory. With `exits`, the process ends with the job.
        """
        return partial(self._watch, is_first=is_first, exits=exits)

    def _watch(
        self,
        command: Sequence[str],
        *,
        is_first: bool,
        exits: bool,
        folder: Path,
        environment: Mapping[str, str],
        output: Path,
        **watching: Any,
    ) -> WatchedRun:
        job = self._take(folder, environment, is_first=is_first)
        order = Go(shlex.split(command[-1])[-1], keep=not exits and self._kept is None)
        keeps = False
        try:
            job.await_ready()
            self._fill(self._most, folder, environment)
            run = job.ahead.watch(begin=lambda: job.go(order), is_done=job.is_done, **watching)
            keeps = job.ahead.is_alive
            if keeps:
                self._kept = job
            return run
        finally:
            job.end_log(output)
            if not keeps:
                job.close()

    def _take(self, folder: Path, environment: Mapping[str, str], *, is_first: bool) -> WarmJob:
        kept, self._kept = (self._kept, None) if is_first else (None, self._kept)
        if kept is None:
            self._fill(1, folder, environment)
        return kept or self._waiting.pop(0)

    def _fill(self, most: int, folder: Path, environment: Mapping[str, str]) -> None:
        while len(self._waiting) < most:
            self._count += 1
            place = self._place / f"job-{self._count}"
            self._waiting.append(WarmJob(self._job, place, folder, environment))

    def close(self) -> None:
        """Kill all waiting processes."""
        for job in [*self._waiting, *([self._kept] if self._kept else [])]:
            job.close()
        self._waiting, self._kept = [], None
