"""Runs of a pipeline: start it from nothing, kill it at its points, start it again, and read its rows in between.

A run counts only with evidence: it reached its point, every process died there by signal 9, and every later
reading was taken when no process of the pipeline was running.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from labkit.core.errors import JobFailed
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.execution import (
    Ask,
    Beside,
    Execution,
    Expected,
    Over,
    Silence,
    Start,
    evidence,
    reached,
)
from labkit.crashtest.blackbox.expectation import Expectation, expect, text
from labkit.crashtest.blackbox.logs import read_after_all
from labkit.crashtest.blackbox.outside import Outside
from labkit.crashtest.blackbox.points import Point
from labkit.crashtest.blackbox.power_cut import Journal
from labkit.crashtest.blackbox.reading import HelperCommands, ending, last_words
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.harness.leftovers import MARK, end, marked_processes
from labkit.crashtest.harness.reader import ReaderFailed
from labkit.crashtest.jobs import NEVER_REACHED
from labkit.crashtest.samples import SETTLED
from labkit.host.file_reads import FileReads
from labkit.host.syscalls.calls import CallKind

_PAUSE = 0.1
"""The seconds between two readings while rows may still arrive."""

READ_AGAIN = 10.0
"""The seconds during which a failing reader is called again while nothing runs."""


ONCE_MORE = "the restarted command ended well and rows were missing; it was started once more"
"""The note on a run that needed one more start."""
IDLE = "rows were missing, and the command was started again and ended without an effect"
"""The beginning of the note on a run whose last starts had no effect, for example because a lock or lease stopped
them.
"""


class Reading(NamedTuple):
    """The rows of one reading, taken while nothing runs."""

    at: float
    start: int
    """The number of the pipeline's latest start, from 1."""
    values: tuple[Any, ...]
    moment: str


@dataclass
class PipelineRun:
    """The record of one run, during it and after it."""

    id: str
    title: str
    folder: Path
    starts: list[Start] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    crashes: list[dict[str, Any]] = field(default_factory=list)
    stuck: str = ""
    """The reason why the pipeline did not recover after a crash; empty if it did."""
    unknown: str = ""
    """The reason why the run proves nothing; empty if it does."""
    notes: list[str] = field(default_factory=list)
    reads: FileReads | None = None
    """The observed reads of files in the watched folders, by the pipeline or by its reader."""
    made_outside: set[str] = field(default_factory=set)
    """The files outside of the watched folders that starts of this run made."""
    seconds: float = 0.0

    @property
    def last(self) -> Start:
        """Return the latest start."""
        return self.starts[-1]

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the rows of the latest reading."""
        return self.readings[-1].values


class Harness:
    """The pipeline, the reader and the store of one test; `run` provides one run."""

    def __init__(self, settings: PipelineSettings, helpers: HelperCommands, folder: Path, mark: str) -> None:
        self.settings, self.helpers = settings, helpers
        self.folder, self.mark = folder, mark
        self.wanted: list[Any] | None = None
        """The rows that are due, as the user gave them; None without `--expected`."""
        self.expectation: Expectation | None = None
        """The rows that are due, in the shape that the run without a crash revealed; None before that run."""
        self.endless: bool | None = None
        """Whether the command never ends by itself; None before the run without a crash."""
        self.silence = Silence()
        self.numbered: frozenset[str] = frozenset()
        """The places whose files keep their numbers in names of effects, since chance decides their order."""
        self.logs: frozenset[str] = frozenset()
        """The masked paths of files that are taken for logs."""
        self.recalled: frozenset[str] = frozenset()
        """The files of `logs` that a later run has read."""
        self.leftover_notes: list[str] = []
        self.beside = Beside()
        self.outside = Outside(settings.watched, settings.ignored)
        self.waits = True
        """Whether a command that ends without an effect while rows are missing is started again for a while."""
        self._count = 0

    def copy_findings(self, other: "Harness") -> None:
        """Copy the findings of the run without a crash from another harness of the same pipeline."""
        self.wanted, self.expectation = other.wanted, other.expectation
        self.endless, self.silence = other.endless, other.silence
        self.numbered, self.logs = other.numbered, other.logs

    def add_findings(self, others: Iterable["Harness"]) -> None:
        """Add the findings of runs of other harnesses of the same pipeline."""
        for other in others:
            self.recalled |= other.recalled
            self.leftover_notes += [each for each in other.leftover_notes if each not in self.leftover_notes]
            self.outside.add(other.outside, other.settings.folder, self.settings.folder)

    @contextmanager
    def run(self, name: str, title: str) -> Iterator[PipelineRun]:
        """Empty and feed everything, and provide one run. A failed job or reader makes the run unknown."""
        self._count += 1
        begun = time.monotonic()
        run = PipelineRun(name, title, self.folder / f"{self._count:03}")
        run.folder.mkdir(parents=True)
        (run.folder / "run.txt").write_text(f"{title}\n", encoding="utf-8")
        self.helpers.begin()
        try:
            with FileReads(self.settings.watched) as reads:
                run.reads = reads
                yield run
                self._recall(run)
        except (JobFailed, ReaderFailed) as error:
            run.unknown = str(error)
        finally:
            self._sweep()
        run.seconds = time.monotonic() - begun

    def _recall(self, run: PipelineRun) -> None:
        """Note the supposed log files that this run has read."""
        if run.reads is None:
            return
        for start in run.starts:
            self.recalled |= read_after_all(start.effects, self.logs, run.reads)

    def _sweep(self) -> None:
        """Kill processes that outlived both their start of the pipeline and the process that guards it."""
        left = marked_processes(self.mark)
        if left:
            end(left)
            self.leftover_notes.append(f"{len(left)} process(es) outlived their start of the pipeline; they were ended")

    def start(self, run: PipelineRun, at: Point | None = None, ask: Ask | None = None) -> Start:
        """Start the pipeline and wait until the start is over, or kill it at a point."""
        log = self._log(run)
        with self._execution(run, at, ask) as execution:
            run.starts.append(execution.run({MARK: self.mark}, log))
        return run.last

    @contextmanager
    def _execution(self, run: PipelineRun, at: Point | None, ask: Ask | None = None) -> Iterator[Execution]:
        """Provide one start, and observe within the `with` block how it uses files outside of the watched folders."""
        expected = Expected(self.misses_nothing, self.endless, self.silence)
        changes, before = self.outside.changes(), len(run.starts)
        with self.outside.observed(changes, run.made_outside) as ending:
            yield Execution(self.settings, self.namer(), expected, at, ask, beside=self.beside, note=changes)
            ending.whole = len(run.starts) > before and run.last.over in (Over.ENDED, Over.COMPLETE)
        run.made_outside |= changes.made

    @staticmethod
    def _log(run: PipelineRun) -> Path:
        log = run.folder / f"start-{len(run.starts) + 1}.log"
        log.touch()
        return log

    @contextmanager
    def crash_recorded(self, run: PipelineRun, at: Point) -> Iterator[Journal]:
        """Crash as `crash` does, and provide a journal of what a loss of power there may leave, within a `with`
        block.
        """
        log = self._log(run)
        # `unexplained` reads every file of the folders, so reads would prove nothing about logs.
        run.reads = None
        with ExitStack() as records:
            with self._execution(run, at) as execution:
                start, journal = records.enter_context(execution.recorded({MARK: self.mark}, log))
                run.starts.append(start)
            unexplained = journal.unexplained()
            self._prove(run, start, at)
            if unexplained:
                raise JobFailed(
                    f"labkit cannot tell what a power cut leaves: {', '.join(unexplained[:2])} differs "
                    "from what the recorded writes give"
                )
            yield journal

    def namer(self) -> Namer:
        """Return a namer for the calls of one start."""
        settings = self.settings
        return Namer(settings.watched, settings.ignored, self.numbered)

    def misses_nothing(self) -> bool:
        """Return whether every row that is due can be read now; other rows may be there as well."""
        values = self.helpers.read()
        return bool(values) and not self._expects(values).misses(values)

    def _expects(self, values: Sequence[Any]) -> Expectation:
        """Return the expectation; before a run has revealed its shape, use the shape of the rows that were read."""
        if self.expectation is not None:
            return self.expectation
        return expect(self.wanted or (), values)

    def crash(self, run: PipelineRun, at: Point) -> None:
        """Start the pipeline and kill it at a point, with evidence. Raises `JobFailed` without evidence."""
        self._prove(run, self.start(run, at), at)
        self.look(run, f"crash {len(run.crashes)}")

    def _prove(self, run: PipelineRun, start: Start, at: Point) -> None:
        """Store the evidence of a crash. Raises `JobFailed` if the crash is not proven."""
        if not reached(start, at):
            raise JobFailed(f"{NEVER_REACHED}: {self.ending_of(start)}")
        emptied = start.watched.emptied
        if emptied is None:
            raise JobFailed(f"the command was not killed at {at.name}, so this run shows nothing")
        if emptied.left:
            raise JobFailed(f"the kill at {at.name} left processes of the command alive: {emptied.left}")
        run.crashes.append(evidence(start, at))

    def ending_of(self, start: Start) -> str:
        """Return a clause that says how a start ended."""
        if start.over is Over.ENDED:
            return f"{ending(start.watched.status)}; {last_words(start.log)}"
        if start.over is Over.STALLED:
            return f"it did nothing for {self.settings.limit:.3g} s (--limit allows more); {last_words(start.log)}"
        return str(start.over.value)

    def recover(self, run: PipelineRun) -> None:
        """Start the command again, and once more if it fails, as its operator would; then read a last time."""
        start = self.start(run)
        if self._failed(start):
            run.notes.append(f"after the crash {self.ending_of(start)}; it was started once more")
            start = self.start(run)
        if self._failed(start):
            run.stuck = self.ending_of(start)
        elif start.over is Over.ENDED and self.settle():
            self._once_more(run)
        self.look(run, "end")

    def _once_more(self, run: PipelineRun) -> None:
        """Start a command again that succeeded although rows are missing, since some jobs need several starts.

        If it ends without any effect, a lease or the like, which expires with time, may block it. The first
        such run therefore repeats the start for as long as `--limit` allows; if that is in vain, later runs do
        not repeat it.
        """
        run.notes.append(ONCE_MORE)
        begun, idle = time.monotonic(), 0
        while True:
            start = self.start(run)
            if self._failed(start):
                run.stuck = self.ending_of(start)
            if not self.settle() or run.stuck or not _is_idle(start):
                return
            idle += 1
            waited = time.monotonic() - begun
            if not self.waits or waited > self.settings.limit:
                self.waits = False
                run.notes.append(f"{IDLE} {idle} time(s) in {waited:.0f} s: {last_words(start.log)}")
                return

    def _failed(self, start: Start) -> bool:
        """Return whether a start failed or hangs. For a command that never ends, silence at the end is no failure."""
        if start.over is Over.STALLED:
            return not self.endless
        return start.over is Over.ENDED and start.watched.status != 0

    def settle(self) -> int:
        """Wait while missing rows may still arrive, and return how many are still missing."""
        finish = time.monotonic() + SETTLED
        while True:
            values = surely(self.helpers.read)
            missing = self._expects(values).misses(values) if values else 1
            if not missing or time.monotonic() > finish:
                return missing
            time.sleep(_PAUSE)

    def look(self, run: PipelineRun, moment: str) -> None:
        """Take a reading while nothing of the pipeline runs. Raises `ReaderFailed` if repeated readings fail."""
        values = surely(self.helpers.read)
        run.readings.append(Reading(time.time(), len(run.starts), tuple(values), moment))


def _is_idle(start: Start) -> bool:
    """Return whether a start had no durable effect."""
    return all(each.kind is CallKind.EXIT for each in start.effects)


def surely(read: Callable[[], list[Any]], seconds: float = READ_AGAIN) -> list[Any]:
    """Return the rows; repeat a failing reading for `seconds`, because a dying process may still hold a lock."""
    finish = time.monotonic() + seconds
    while True:
        try:
            return read()
        except ReaderFailed:
            if time.monotonic() > finish:
                raise
        time.sleep(_PAUSE)


def steady(read: Callable[[], list[Any]], seconds: float = SETTLED) -> list[Any]:
    """Return the rows once two readings agree, while nothing runs. Raises `JobFailed` if they never do."""
    finish = time.monotonic() + seconds
    values = surely(read)
    while True:
        time.sleep(_PAUSE)
        again = surely(read)
        if counted(again) == counted(values):
            return again
        if time.monotonic() > finish:
            raise JobFailed(
                f"it returned different rows when it was called twice ({len(values)}, then {len(again)} "
                "rows) although nothing ran"
            )
        values = again


def counted(values: Sequence[Any]) -> Counter[str]:
    """Return how often each row occurs, by its text."""
    return Counter(map(text, values))


def effects_of(run: PipelineRun, start: int) -> list[Effect]:
    """Return the effects of one start of a run, numbered from 1; none if there was no such start."""
    return run.starts[start - 1].effects if len(run.starts) >= start else []
