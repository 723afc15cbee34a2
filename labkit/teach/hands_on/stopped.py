"""Show that a stopped writer is not dead: suspend a real process, let another one write, then resume the first.

Both processes try to write the same three rows, and the judge compares the store with these rows.
"""

import os
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import psutil

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.host.processes.own_python import own_python
from labkit.stores.kafka.reader import READ_COMMITTED
from labkit.teach.hands_on.kafka import kafka
from labkit.teach.hands_on.stopped_writer import ROWS
from labkit.view.card import BAD, Cell, Tabled, para

PATIENCE = 60.0
"""The longest time, in seconds, that this program waits for a writer."""
NAMES = {
    "file": "a file; the writer looks first",
    "table": "a table; the writer looks first",
    "owned": "a table with an epoch row",
    "topic": "Kafka, one transactional id",
}
"""The name of each kind of store in the table of results."""


class Stopped(NamedTuple):
    """The result for one store: whether the stopped and the second writer wrote or were refused, and a verdict."""

    name: str
    first: str
    """The last output line of the writer that was stopped: `written` or `refused`."""
    second: str
    """The last output line of the writer that wrote meanwhile."""
    verdict: Verdict

    @property
    def twice(self) -> int:
        """The number of rows that the store contains more than once."""
        return len(self.verdict.duplicate)


class StoppedWriters(Tabled):
    """The results of `lab.stopped_writers`, one for each store; a notebook displays them as a table."""

    title = "Stopped, replaced, and continued"
    under = "Real processes: SIGSTOP, a second writer, SIGCONT."

    def __init__(self, writers: Sequence[Stopped], missing: str = "") -> None:
        self.writers, self.missing = list(writers), missing

    @property
    def doubled(self) -> list[str]:
        """The names of the stores that contain rows more than once."""
        return [each.name for each in self.writers if each.twice]

    def _head(self) -> Sequence[str]:
        return "", "rows", "the successor", "the old writer"

    def _rows(self) -> Iterable[Sequence[str | Cell]]:
        for each in self.writers:
            tone = BAD if each.verdict.rows != len(ROWS) else ""
            yield each.name, Cell(f"{each.verdict.rows} of {len(ROWS)}", tone), each.second, each.first

    def _parts(self) -> Iterable[str]:
        return [*super()._parts(), *([para(self.missing, kind="lkc-under")] if self.missing else [])]


def stopped_writers() -> StoppedWriters:
    """Suspend a writer before it writes, let a second one write, resume the first, and check each store's rows.

    The stores are a file, two tables and a Kafka topic. Without a broker, the topic is left out and the result says so.
    Raises `JobFailed` if a writer does not respond.
    """
    writers, missing = [], ""
    with tempfile.TemporaryDirectory(prefix="labkit-stopped-") as folder:
        for store in ("file", "table", "owned"):
            path = str(Path(folder) / store)
            first, second = _stopped(store, path)
            if store == "file":
                rows = [int(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
            else:
                with closing(sqlite3.connect(path)) as there:
                    rows = [row for (row,) in there.execute("SELECT id FROM rows")]
            writers.append(Stopped(NAMES[store], first, second, _judged(rows)))
    try:
        server = kafka()
    except ServiceUnavailable as error:
        missing = f"Kafka is left out: {error}"
    else:
        topic = server.topic()
        first, second = _stopped("topic", f"{server.address}/{topic.name}")
        rows = [each.row.offset for each in topic.entries(READ_COMMITTED)]
        writers.append(Stopped(NAMES["topic"], first, second, _judged(rows)))
    return StoppedWriters(writers, missing)


def _judged(rows: Sequence[int]) -> Verdict:
    due = [Record(row, "row", row) for row in ROWS]
    seen = [Observation(row, "row", row, 0, 1) for row in rows]
    return judge(due, History([*seen, Reading("end")]))


class _Writer:
    """A writer in a process of its own, which `close` kills."""

    def __init__(self, store: str, place: str) -> None:
        module = "labkit.teach.hands_on.stopped_writer"
        self.process = subprocess.Popen(
            own_python("-m", module, store, place),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def close(self) -> None:
        self.process.kill()  # ends also a stopped process
        self.process.communicate()

    def says(self) -> str:
        """Return the writer's next line of output. Raises `JobFailed` if none arrives within `PATIENCE` seconds."""
        assert self.process.stdout is not None
        # A process that prints nothing in time is killed, so that readline returns.
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        try:
            line = self.process.stdout.readline().strip()
        finally:
            timer.cancel()
        if not line:
            raise JobFailed(f"a writer process ended, or did not answer within {PATIENCE:g} s; run the cell again.")
        return line

    def go_on(self) -> None:
        """Tell the writer to write now; a suspended writer does so as soon as it is resumed."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        """Suspend the process with SIGSTOP, and wait until it is suspended; after `PATIENCE` s raises `JobFailed`."""
        os.kill(self.process.pid, signal.SIGSTOP)
        end = time.monotonic() + PATIENCE
        while psutil.Process(self.process.pid).status() != psutil.STATUS_STOPPED:
            if time.monotonic() > end:
                raise JobFailed(f"a writer did not stop within {PATIENCE:g} s; run the cell again.")
            time.sleep(0.01)


def _stopped(store: str, place: str) -> tuple[str, str]:
    """Suspend a writer, let a second one write, and resume the first one; return the last output line of each."""
    with ExitStack() as stack:
        first = stack.enter_context(closing(_Writer(store, place)))
        first.says()
        first.stop()
        first.go_on()
        second = stack.enter_context(closing(_Writer(store, place)))
        second.says()
        second.go_on()
        written = second.says()
        os.kill(first.process.pid, signal.SIGCONT)
        return first.says(), written
