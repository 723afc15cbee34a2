"""Keeps plain jobs with a warm Spark session for the starts of a sink's test by its system calls.

A start of Spark takes several times as long as the run of a small job, and the user's code takes no part in it. So jobs
start ahead of time and wait (`labkit.crashtest.harness.plain_job`, `wait`), and each start of the test lets one go on.
"""

import shlex
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from labkit.core.errors import JobFailed
from labkit.core.words import telling_line
from labkit.crashtest.harness.drivers import at_once
from labkit.crashtest.harness.leftovers import MARK, end, marked_processes
from labkit.crashtest.harness.plain_job import GO, READY
from labkit.host.cores import cores
from labkit.host.processes.own_python import own_python
from labkit.host.syscalls.ahead import Ahead
from labkit.host.syscalls.calls import Answer, Call, WatchedRun
from labkit.host.syscalls.watching import go_on

START_SECONDS = 300.0
"""A job that is not warm after this many seconds has failed."""
_POLL = 0.02


class WarmJob:
    """One plain job that was started ahead, in a folder of its own."""

    def __init__(self, job: Path, place: Path, folder: Path, environment: Mapping[str, str]) -> None:
        """Start the job that the file `job` describes in the working folder `folder`; its own files go to `place`."""
        place.mkdir(parents=True)
        self._place, self.log = place, place / "log.txt"
        # A mark of its own: after each run everything with the test's mark is killed, and this waits for a later one.
        self._mark = uuid.uuid4().hex
        words = own_python("-B", "-m", "labkit.crashtest.harness.plain_job", "wait", str(job), str(place))
        self.ahead = Ahead(words, folder=folder, environment={**environment, MARK: self._mark}, output=self.log)

    def await_ready(self) -> None:
        """Wait until the job is warm. Raises `JobFailed`, with the first error of its log, if it fails."""
        finish = time.monotonic() + START_SECONDS
        while not (self._place / READY).exists():
            if self.ahead.has_ended or time.monotonic() > finish:
                line = telling_line(self.log.read_text(encoding="utf-8", errors="replace"))
                raise JobFailed(f"Spark could not be started for the sink; it said {line[:200]!r}")
            time.sleep(_POLL)

    def go(self, job: str) -> None:
        """Let the job that the file `job` describes go on in the session."""
        path = self._place / "names-the-job"
        path.write_text(job)
        path.rename(self._place / GO)

    def close(self) -> None:
        """Kill the job if it still runs, and remove its folder."""
        self.ahead.close()
        end(marked_processes(self._mark))
        shutil.rmtree(self._place, ignore_errors=True)


class WarmJobs:
    """The jobs that wait for the next starts of a test."""

    def __init__(self, job: Path, place: Path) -> None:
        """Prepare for the job that the file `job` describes; `place` is a new folder for the files of all jobs."""
        self._job, self._place = job, place
        self._waiting: list[WarmJob] = []
        self._count = 0
        self._most = at_once(psutil.virtual_memory().available, cores())

    def watch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        output: Path,
        decide: Callable[[Call], Answer],
        tick: Callable[[], Answer] = go_on,
        contents: bool = False,
    ) -> WatchedRun:
        """Let the next job go on and ask about each of its system calls, in the place of `watch` of a new command.

        The last word of the command is the file that describes the job.
        """
        described = shlex.split(command[-1])[-1]
        self._fill(1, folder, environment)
        job = self._waiting.pop(0)
        try:
            job.await_ready()
            self._fill(self._most, folder, environment)
            # The log keeps its inode, by which the watcher recognises the job's own output.
            job.log.replace(output)
            return job.ahead.watch(decide, tick, begin=lambda: job.go(described), contents=contents)
        finally:
            job.close()

    def _fill(self, most: int, folder: Path, environment: Mapping[str, str]) -> None:
        while len(self._waiting) < most:
            self._count += 1
            place = self._place / f"job-{self._count}"
            self._waiting.append(WarmJob(self._job, place, folder, environment))

    def close(self) -> None:
        """End the jobs that wait."""
        while self._waiting:
            self._waiting.pop().close()
