"""Runs of a pipeline: start it from nothing, kill it at crash points, start it again, and read its rows in between.

A run counts only with evidence: the pipeline reached its crash point, every process of it died there by signal 9, and
every later reading was taken when no process of the pipeline was running.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput, JobFailed
from labkit.crashtest.blackbox.durability import is_rebuilt
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.execution import (
    ENDED_MEANWHILE,
    NEVER_REACHED,
    Ask,
    Beside,
    Execution,
    Over,
    Silence,
    Start,
    Starter,
    evidence,
    fault_evidence,
    reached,
    undelivered,
)
from labkit.crashtest.blackbox.expectation import Expectation, text
from labkit.crashtest.blackbox.folder_changes import changed, files_at, paths_of
from labkit.crashtest.blackbox.lines import Lines
from labkit.crashtest.blackbox.outside import Outside
from labkit.crashtest.blackbox.points import EXIT, Point
from labkit.crashtest.blackbox.power_cut import Journal, recording
from labkit.crashtest.blackbox.random_names import RandomName, mask_random
from labkit.crashtest.blackbox.reading import HelperCommands, ending, last_words
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.blackbox.states import RunFiles
from labkit.crashtest.harness.leftovers import MARK, end, marked_processes
from labkit.crashtest.harness.reader import ReaderFailed
from labkit.crashtest.rows import Shape
from labkit.crashtest.samples import SETTLED
from labkit.crashtest.verdict import Result
from labkit.host.syscalls.calls import CallKind, Watcher
from labkit.host.syscalls.faults import Fault
from labkit.host.syscalls.guarding import GuardLate

_PAUSE = 0.1
"""The seconds between two readings while rows may still arrive."""

READ_AGAIN = 10.0
"""A reader that fails although no process of the pipeline runs is called again for this many seconds."""
OUTAGE_AGAIN = 2.0
"""The same for a reading between crash and restart; shorter, because no process is left that could hold a lock."""
FAILED_AGAIN = 3
"""How often a failing restart is repeated at most; after the first time only if it had a durable effect."""
REFUSED_PAUSE = 1.0
"""The pause in seconds before a command that refused to run is started again."""
WAITS_SECONDS = 2.0
"""A second instance without a system call for at least this many seconds waits for the first one, and is killed."""

SHOWN_EFFECTS = 3
"""How many effects a note names of those that other threads made while labkit held a call."""

# Notes on runs, and reasons why a run is stuck or unknown; most of them are only the beginning of the text.
OUTAGE = "readers have an outage"
LEASE = "the command refused to run, as with a lease of the killed instance"
REFUSES = "the command refused to run; one run of the test repeated it in vain for as long as --limit allows"
UNREADABLE = "the reader fails after the recovery"
OTHER_ROWS = "without a crash, the rows depend on when --more adds its input, so nobody knows which are due"
ONCE_MORE = "the restarted command ended well and rows were missing; it was started once more"
IDLE = "rows were missing, and the command was started again and ended without an effect"


class Reading(NamedTuple):
    """The rows that the reader returned in one call, while no process of the pipeline was running."""

    at: float
    start: int
    """The running number of the latest start of the pipeline before the reading, from 1."""
    values: tuple[Any, ...]
    moment: str


@dataclass
class PipelineRun:
    """The record of one run of a crash test."""

    id: str
    title: str
    folder: Path
    starts: list[Start] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    crashes: list[dict[str, Any]] = field(default_factory=list)
    stuck: str = ""
    """The reason why the pipeline did not recover after a crash; empty if it recovered."""
    unknown: str = ""
    """The reason why the run proves nothing; empty if it counts."""
    notes: list[str] = field(default_factory=list)
    expectation: Expectation | None = None
    """The rows that are due in this run; None if they are those of every run."""
    grown: int = 0
    """The number of readings before the run got new input; until then, the usual rows are due."""
    made_outside: set[str] = field(default_factory=set)
    """The files outside of the watched folders that any start of this run made."""
    seconds: float = 0.0
    files: RunFiles | None = field(default_factory=RunFiles)
    """Compares the files before each effect with those at the run's start; None if nobody needs this."""
    altered: list[str] = field(default_factory=list)
    """The files that the reader itself changed when it read after the last crash, as by a database's recovery."""

    @property
    def last(self) -> Start:
        """The latest start of the command."""
        return self.starts[-1]

    @property
    def values(self) -> tuple[Any, ...]:
        """The rows of the latest reading."""
        return self.readings[-1].values


class Harness:
    """Starts and kills the pipeline, and reads its rows, in all runs of a crash test."""

    def __init__(self, settings: PipelineSettings, helpers: HelperCommands, folder: Path, mark: str) -> None:
        self.settings, self.helpers = settings, helpers
        self.folder, self.mark = folder, mark
        self.wanted: list[Any] | None = None
        """The rows that are due, as `--expected` or the input of a sink's test gives them; None if neither does."""
        self.expectation: Expectation | None = None
        """The rows that are due, and how the reader returns them, as the run without a crash shows; until then None."""
        self.endless: bool | None = None
        """Whether the command never ends by itself; None before the run without a crash."""
        self.silence = Silence()
        self.numbered: frozenset[str] = frozenset()
        """The masked paths for which names of effects keep the files' numbers, because the files' order is random."""
        self.random: tuple[RandomName, ...] = ()
        """The names of files with random parts that two runs without a crash showed."""
        self.logs: frozenset[str] = frozenset()
        """The masked paths of files that look like logs; the test tries crashes before effects on them last."""
        self.leftover_notes: list[str] = []
        self.beside = Beside()
        self.outside = Outside(settings.watched, settings.ignored)
        self.late = SETTLED
        """The seconds that rows may take to arrive after the command has ended; 0 if it keeps nothing but files."""
        self.waited_in_vain = Event()
        """Set after a run repeated a start that did nothing, in vain; then no run of the test repeats such starts."""
        self.lines = Lines()
        self.reads_first = False
        """Whether each run begins with a reading, because the first call of a reader may create the store."""
        self.longer: list[Any] = []
        """The rows of a run without a crash to which `--more` has added input."""
        self.starter: Starter = lambda **_: settings.watch
        self._count = 0

    def copy_findings(self, other: "Harness") -> None:
        """Copy what `other`, the harness of another folder, found in the run without a crash."""
        self.wanted, self.expectation = other.wanted, other.expectation
        self.endless, self.silence = other.endless, other.silence
        self.numbered, self.random, self.logs = other.numbered, other.random, other.logs
        self.waited_in_vain, self.lines = other.waited_in_vain, other.lines
        self.reads_first, self.longer = other.reads_first, other.longer
        self.late = other.late

    def add_findings(self, others: Iterable["Harness"]) -> None:
        """Add the findings of the harnesses `others`, which ran the pipeline in copies of the user's folder.

        The findings are the processes that outlived a start of the pipeline, and its state outside of watched folders.
        """
        for other in others:
            self.leftover_notes += [each for each in other.leftover_notes if each not in self.leftover_notes]
            self.outside.add(other.outside, other.settings.folder, self.settings.folder)

    @contextmanager
    def run(self, name: str, title: str) -> Iterator[PipelineRun]:
        """Empty the store, feed the input, and provide the record of a new run, in a `with` block.

        The run's result is unknown if the command or the reader fails in the block, or if the store could not be
        emptied. Until the run without a crash is over, a store that cannot be emptied raises an error instead, because
        no crash can be the cause.
        """
        self._count += 1
        begun = time.monotonic()
        run = PipelineRun(
            name,
            title,
            self.folder / f"{self._count:03}",
            files=RunFiles([self.settings.folder, *self.settings.watched], by_meaning=self.settings.LOGS_BY_MEANING),
        )
        run.folder.mkdir(parents=True)
        (run.folder / "run.txt").write_text(f"{title}\n", encoding="utf-8")
        self._begin(run)
        try:
            yield run
        except (JobFailed, ReaderFailed, GuardLate) as error:
            run.unknown = str(error)
        finally:
            if left := marked_processes(self.mark):
                end(left)
                note = f"{len(left)} process(es) outlived their start of the pipeline; they were ended"
                self.leftover_notes.append(note)
        run.seconds = time.monotonic() - begun

    def _begin(self, run: PipelineRun) -> None:
        try:
            self.helpers.begin()
            if self.reads_first:
                with suppress(ReaderFailed, InvalidInput):
                    self.helpers.read()
        except (InvalidInput, JobFailed, GuardLate) as error:
            if self.expectation is None:
                raise
            run.unknown = str(error)

    def start(
        self,
        run: PipelineRun,
        at: Point | None = None,
        ask: Ask | None = None,
        watch: Watcher | None = None,
        fault: Fault | None = None,
        *,
        late: bool = False,
    ) -> Start:
        """Run the pipeline's command until it ends, or kill it at the point `at`, and return the record of the start.

        If a `fault` is given, the call at this point suffers it and there is no kill. With `late`, this call is held
        until the other threads have gone on, and then labkit kills the command. `ask` is called before each system call
        with a durable effect, while the pipeline is stopped. `watch`, if given, replaces the usual function that starts
        the command and watches its system calls.
        """
        if run.unknown:
            raise JobFailed(run.unknown)
        log = run.folder / f"start-{len(run.starts) + 1}.log"
        log.touch()
        changes, exits = self.outside.changes(), ask is not None or (at is not None and at.name == EXIT)
        with self.outside.observed(changes, run.made_outside):
            lines = self.lines.of_another_start() if run.starts else self.lines
            execution = self._execution(run, watch or self.starter(is_first=not run.starts, exits=exits), lines)
            execution.at, execution.ask, execution.note, execution.fault = at, ask, changes, fault
            execution.late = late
            # In the run without a crash labkit must not read files, because it observes who reads them.
            execution.files = run.files if ask is None and not self.settings.unwatchable else None
            start = execution.run({MARK: self.mark}, log)
            changes.whole = start.over in (Over.ENDED, Over.COMPLETE)
        run.starts.append(start)
        run.made_outside |= changes.made
        return start

    def _execution(self, run: PipelineRun, watch: Watcher, lines: Lines) -> Execution:
        expected = (self.misses_nothing, self.endless, self.silence)
        return Execution(self.settings, self.namer(run), *expected, self.beside, lines, watch)

    @contextmanager
    def crash_recorded(self, run: PipelineRun, at: Point) -> Iterator[Journal]:
        """Crash at a point, and provide the recorded calls in a `with` block, to compute what a power cut leaves.

        Raises `JobFailed` if nothing proves the crash, or if the calls do not explain the files that the run left.
        """
        with recording(self.settings.watched) as journal:
            start = self.start(run, at, watch=journal.watch)
            unexplained = journal.unexplained()
            self._prove(run, start, at)
            if unexplained:
                raise JobFailed(
                    "labkit cannot tell what a power cut leaves: the recorded writes do not explain the contents of "
                    f"{', '.join(unexplained[:2])}"
                )
            yield journal

    def namer(self, run: PipelineRun | None = None) -> Namer:
        """Return an object that names the system calls of the run's next start; pass it the calls in order of time."""
        settings = self.settings
        earlier = [each.call for start in (run.starts if run else ()) for each in start.effects]
        folders, more = (settings.watched, settings.ignored), partial(mask_random, names=self.random)
        return Namer(*folders, self.numbered, earlier, settings.unnamed, mask_more=more)

    def read(self) -> list[Any]:
        """Return the rows that can be read now. Raises `ReaderFailed` if the reader fails.

        If the reader returns something other than rows, the run without a crash raises `InvalidInput`. Later runs raise
        `ReaderFailed` instead, because a crash may be the cause.
        """
        try:
            return self.helpers.read()
        except InvalidInput as error:
            if self.expectation is None:
                raise
            raise ReaderFailed(str(error)) from None

    def misses_nothing(self) -> bool:
        """Return whether every expected row can be read now; other rows may be there as well."""
        values = self.helpers.read()
        return bool(values) and not self._expects(values).misses(values)

    def _expects(self, values: Sequence[Any]) -> Expectation:
        if self.expectation is not None:
            return self.expectation
        return self.settings.expectation(self.wanted or (), values)

    def crash(self, run: PipelineRun, at: Point, *, read: bool = True, late: bool = False) -> None:
        """Kill the pipeline at a crash point, and then, with `read`, read the rows.

        With `late`, labkit holds the call at the point until the other threads have gone on, and then kills everything.
        Raises `JobFailed` if nothing proves the kill.
        """
        start = self.start(run, at, late=late)
        if start.late_from is not None:
            if start.watched.held is None:
                raise JobFailed(f"{ENDED_MEANWHILE}: {self.ending_of(start)}")
            meanwhile = ", ".join(each.name for each in start.effects[start.late_from :][:SHOWN_EFFECTS])
            run.notes.append(f"while the call was late, other threads went on with {meanwhile or 'nothing lasting'}")
        if run.crashes and not reached(start, at) and self._refuses(start):
            start = self._outwait(run, start, at)
        self._prove(run, start, at)
        if read:
            paths = [path for each in start.effects for path in paths_of(each)]
            before = files_at(paths)
            self.look_meanwhile(run, f"crash {len(run.crashes)}")
            altered = changed(before, files_at(paths), self.namer(), self.folder.parent)
            run.altered = [each for each in altered if not is_rebuilt(each)]

    def crash_loop(self, run: PipelineRun, at: Point, times: int) -> None:
        """Crash at the same point up to `times` times; stop earlier if a start does not reach this point any more."""
        while len(run.crashes) < times:
            start = self.start(run, at)
            if run.crashes and not reached(start, at):
                run.notes.append(f"start {len(run.starts)} did not reach the point again: {self.ending_of(start)}")
                return
            self._prove(run, start, at)
            self.look_meanwhile(run, f"crash {len(run.crashes)}")

    def _prove(self, run: PipelineRun, start: Start, at: Point) -> None:
        if not reached(start, at):
            raise JobFailed(f"{NEVER_REACHED}: {self.ending_of(start)}")
        emptied = start.watched.emptied
        if emptied is None:
            raise JobFailed(f"the command was not killed at {at.name}, so this run proves nothing; repeat the test")
        if emptied.left:
            raise JobFailed(
                f"the kill at {at.name} left processes alive ({emptied.left}), so this run proves nothing; "
                "repeat the test"
            )
        run.crashes.append(evidence(start, at))

    def fail(self, run: PipelineRun, at: Point, fault: Fault) -> None:
        """Start the pipeline, let the system call at a point suffer a fault, and recover.

        If the command failed, or if SIGTERM stopped it, labkit starts it again. If it reported success, labkit does
        not, even if rows are missing, because no scheduler would. Raises `JobFailed` if there is no proof of the fault.
        """
        start = self.start(run, at, fault=fault)
        if why := undelivered(start, at, fault):
            raise JobFailed(
                why + (f", so the fault was not injected: {self.ending_of(start)}" if why == NEVER_REACHED else "")
            )
        run.crashes.append(fault_evidence(start, at))
        run.notes.append(f"with the fault {self.ending_of(start)}")
        if start.unmodelled:
            run.notes.append(f"labkit cannot take back what the failed sync covered: {start.unmodelled}")
        if self.failed(start) or fault is Fault.SIGTERM:
            self.look_meanwhile(run, "fault")
            self.recover(run)
            return
        with suppress(ReaderFailed):
            self.settle()
        self._look_finally(run)

    def ending_of(self, start: Start) -> str:
        """Return a clause on how a start of the pipeline ended, with a quotation from its log."""
        if start.over is Over.ENDED:
            return f"{ending(start.watched.status)}; {last_words(start.log)}"
        if start.over is Over.STALLED:
            return f"it did nothing for {self.settings.limit:.3g} s (--limit allows more); {last_words(start.log)}"
        return str(start.over.value)

    def recover(self, run: PipelineRun) -> None:
        """Start the command after a crash, and read the rows. A start that fails or leaves rows missing is repeated."""
        start = self.start(run)
        what = "fault" if any("fault" in each for each in run.crashes) else "crash"
        for number in range(FAILED_AGAIN):
            # A start that fails after an effect may have made progress, so another one is worth a try.
            if not self.failed(start) or (number and self._refuses(start)):
                break
            run.notes.append(f"after the {what} {self.ending_of(start)}; it was started once more")
            start = self.start(run)
        if self.failed(start) and self._refuses(start):
            start = self._outwait(run, start)
        if self.failed(start):
            run.stuck = self.ending_of(start)
        elif start.over is Over.ENDED and self._is_incomplete():
            # Rows that could be read before and are missing now count as gone, even if another start brings them back.
            self.look_meanwhile(run, f"restart {len(run.starts)}")
            self._once_more(run)
        self._look_finally(run)

    def _look_finally(self, run: PipelineRun) -> None:
        try:
            # In a stuck run, a longer wait brings no more rows.
            self.look(run, "end", OUTAGE_AGAIN if run.stuck else READ_AGAIN)
        except ReaderFailed as error:
            run.stuck = run.stuck or f"{UNREADABLE}: {str(error).rstrip('.')}"

    def add_input_without_crash(self) -> list[str]:
        """Run the command without a crash, add new input, run it again, and store all rows as the expected rows.

        As a check, another run gets all input at once. If that run leaves other rows, or if rows of `--expected` are
        missing, nobody knows which rows are right. Then store nothing, and return the reason in a list; otherwise,
        return []. Raises `InvalidInput` if a run fails or the new input gives no new row.
        """
        with self.run("new_input healthy", "no crash, and new input") as run:
            usual = self.start(run)
            before = steady(self.read)
            self.helpers.add_input()
            longer = self._rows_without_crash(run)
        if run.unknown or usual.over is not Over.ENDED:
            reason = (
                run.unknown.removeprefix("--more: ")
                or "the command does not end by itself, so nobody knows when it has taken the input"
            )
            raise InvalidInput(
                f"--more {self.settings.more}: new input cannot be tested, because {reason.rstrip('.')}."
            )
        due = self.settings.expectation(longer, longer)
        if not due.misses(before):
            raise InvalidInput(
                f"--more {self.settings.more}: no new row came out after this command; make it add input that the "
                "pipeline reads."
            )
        with self.run("all input healthy", "no crash, and all input at once") as run:
            self.helpers.add_input()
            at_once = self._rows_without_crash(run)
        if run.unknown:
            raise InvalidInput(
                f"--more {self.settings.more}: labkit cannot test the new input, because it could not judge the "
                f"run without a crash that read the old and the new input together: {run.unknown.rstrip('.')}."
            )
        if counted(at_once) != counted(longer):
            return [f"{OTHER_ROWS}: {len(longer)} row(s) if it comes later, {len(at_once)} if it comes at once"]
        # Without --expected, the rows of two runs without a crash count as right, even if new input changed some.
        expected = self.expectation if self.wanted is not None and due.shape is not Shape.LAST else None
        if expected is not None and (lacking := expected.misses(longer)):
            return [f"{OTHER_ROWS}: {lacking} row(s) of --expected are missing after it"]
        self.longer = longer
        return []

    def _rows_without_crash(self, run: PipelineRun) -> list[Any]:
        start = self.start(run)
        if self.failed(start):
            raise JobFailed(f"the command failed in a run without a crash: {self.ending_of(start)}")
        return steady(self.read)

    @contextmanager
    def new_input(self, run: PipelineRun) -> Iterator[None]:
        """Add new input. In the `with` block, later readings of the run must also have the rows for this input."""
        self.helpers.add_input()
        usual, run.grown = self.expectation, len(run.readings)
        run.expectation = self.expectation = self.settings.expectation(self.longer, self.longer)
        try:
            yield
        finally:
            self.expectation = usual

    def start_two(self, run: PipelineRun, held: str) -> None:
        """Suspend the command before the system call `held`, run a second instance, and let the first instance go on.

        Then start the command once more, as a scheduler would do. A second instance that waits for the first one is
        killed. Raises `JobFailed` if the first instance never made the call.
        """
        others: list[Start] = []

        def hold(effect: Effect) -> None:
            if effect.name == held and not others:
                others.append(self._start_beside(run))

        first = self.start(run, ask=hold)
        if not others:
            raise JobFailed(f"{NEVER_REACHED}: {self.ending_of(first)}")
        run.starts.sort(key=lambda start: start.watched.began)
        for which, start in (("first", first), ("second", others[0])):
            waited = start is others[0] and start.over is Over.STALLED
            how = "it waited for the first one, and was killed" if waited else self.ending_of(start)
            run.notes.append(f"two instances, the {which} one: {how}")
        self.look_meanwhile(run, "both over")
        self.recover(run)

    def _start_beside(self, run: PipelineRun) -> Start:
        """Run a second instance of the command while the first one is suspended, and return the record of its start."""
        # Files outside of the watched folders are not recorded, because the suspended instance uses them as well.
        execution = self._execution(run, self.starter(is_first=False, exits=True), self.lines.of_another_start())
        execution.settings = replace(self.settings, limit=WAITS_SECONDS)
        log = run.folder / "beside.log"
        log.touch()
        start = execution.run({MARK: self.mark}, log)
        run.starts.append(start)
        return start

    def _outwait(self, run: PipelineRun, start: Start, at: Point | None = None) -> Start:
        """Repeat a start that ended at once without doing anything, and return the last start.

        The killed instance may still hold a lease. So labkit repeats the start until it succeeds or reaches the crash
        point `at`, at most for `--limit` seconds. If this is in vain, later runs of the test do not wait at all.
        """
        begun = time.monotonic()
        while self._refuses(start):
            if self.waited_in_vain.is_set() or time.monotonic() - begun > self.settings.limit:
                self.waited_in_vain.set()
                run.notes.append(REFUSES)  # the same in every run, since chance decides which of them waits
                return start
            time.sleep(REFUSED_PAUSE)
            start = self.start(run, at)
            if reached(start, at) if at else not self.failed(start):
                run.notes.append(f"{LEASE}; it worked {time.monotonic() - begun:.0f} s later")
                return start
        return start

    def _refuses(self, start: Start) -> bool:
        quiet = (each.kind is CallKind.EXIT or each.where in self.logs for each in start.effects)
        return start.over is Over.ENDED and all(quiet)

    def _is_incomplete(self) -> bool:
        try:
            return self.settle(OUTAGE_AGAIN) > 0
        except ReaderFailed:
            return True

    def _once_more(self, run: PipelineRun) -> None:
        """Start the command again, because rows are missing although the last start ended well.

        Some jobs need several starts. A start that does nothing may be blocked until the lease of the killed process
        expires, so labkit repeats such starts for up to `settings.patience` seconds. If this is in vain, later runs of
        the test give up after the first start that does nothing.
        """
        run.notes.append(ONCE_MORE)
        begun, idle = time.monotonic(), 0
        while True:
            start = self.start(run)
            if self.failed(start):
                run.stuck = self.ending_of(start)
            if run.stuck or not self._is_incomplete() or not self._refuses(start):
                return
            idle += 1
            waited = time.monotonic() - begun
            if self.waited_in_vain.is_set() or waited > self.settings.patience:
                self.waited_in_vain.set()
                run.notes.append(f"{IDLE} {idle} time(s) in {waited:.0f} s: {last_words(start.log)}")
                return
            # The pause between idle starts is the same whether or not labkit has waited for late rows meanwhile.
            time.sleep(SETTLED - self.late)

    def failed(self, start: Start) -> bool:
        """Return whether a start failed or hung.

        A start that did nothing for too long counts as hung, unless the command is known never to end by itself.
        """
        if start.over is Over.STALLED:
            return not self.endless
        return start.over is Over.ENDED and start.watched.status != 0

    def settle(self, again: float = READ_AGAIN) -> int:
        """Wait for missing rows if they may come late, and return how many are still missing.

        A reader that fails is called again for up to `again` seconds.
        """
        finish = time.monotonic() + self.late
        while True:
            values = surely(self.read, again)
            missing = self._expects(values).misses(values) if values else 1
            if not missing or time.monotonic() > finish:
                return missing
            time.sleep(_PAUSE)

    def look(self, run: PipelineRun, moment: str, again: float = READ_AGAIN) -> None:
        """Read the rows while no process of the pipeline runs, and store them; `moment` names this reading.

        Raises `ReaderFailed` if the reader still fails after `again` seconds.
        """
        values = surely(self.read, again)
        run.readings.append(Reading(time.time(), len(run.starts), tuple(values), moment))

    def look_meanwhile(self, run: PipelineRun, moment: str) -> None:
        """Read the rows between a crash and the end of the recovery; if the reader fails, add a note instead."""
        try:
            self.look(run, moment, OUTAGE_AGAIN)
        except ReaderFailed as error:
            run.notes.append(f"{OUTAGE} after {moment}: {error}")

    def recovery_of(self, run: PipelineRun) -> Start | None:
        """Return the start that recovered from the last crash of a run; None if there was none."""
        killed = [number for number, each in enumerate(run.starts) if each.over is Over.KILLED]
        starts = run.starts[killed[-1] + 1 :] if killed else []
        later = [each for each in starts if not self._refuses(each)] or starts
        return next(iter(later), None)


def surely(read: Callable[[], list[Any]], seconds: float = READ_AGAIN) -> list[Any]:
    """Return the reader's rows. A reader that fails is called again for up to `seconds`.

    The failure may be temporary, because a dying process may still hold a lock.
    """
    finish = time.monotonic() + seconds
    while True:
        try:
            return read()
        except ReaderFailed:
            if time.monotonic() > finish:
                raise
        time.sleep(_PAUSE)


def steady(read: Callable[[], list[Any]], seconds: float = SETTLED) -> list[Any]:
    """Return the reader's rows as soon as two successive calls of the reader return the same rows.

    Raises `JobFailed` if they still return different rows after `seconds`.
    """
    finish = time.monotonic() + seconds
    values = surely(read)
    while True:
        time.sleep(_PAUSE)
        again = surely(read)
        if counted(again) == counted(values):
            return again
        if time.monotonic() > finish:
            raise JobFailed(
                f"two calls of the reader returned different rows ({len(values)}, then {len(again)} rows), although "
                "the pipeline was not running; let the reader return the same rows for the same store"
            )
        values = again


def counted(values: Sequence[Any]) -> Counter[str]:
    """Return a dict from each row's JSON text to how often the row occurs."""
    return Counter(map(text, values))


def late_notes(results: Sequence[Result]) -> list[str]:
    """Return notes on runs in which rows were missing after the restart.

    One note is on runs in which another start of the command brought the missing rows, and one on runs in which further
    starts did nothing.
    """
    late = [each.id for each in results if ONCE_MORE in each.notes and not each.rows_of("lost") and not each.stuck]
    idle = [f"{each.id}: {note}" for each in results for note in each.notes if IDLE in note and each.rows_of("lost")]
    notes = [
        f"{each}; rows that would come after a longer wait, as for a lease, count as lost (--limit)" for each in idle
    ]
    restarts = "one restart ended well without all rows; they came with another start"
    return notes[:1] + ([f"after {len(late)} crash(es), as {late[0]}, {restarts}"] if late else [])


def outage_notes(results: Sequence[Result]) -> list[str]:
    """Return notes on runs in which the reader failed after the crash, and worked again after the recovery.

    There are also notes on runs in which the command refused to run right after the crash, as if a lease had to expire.
    """
    notes = []
    for beginning in (OUTAGE, LEASE):
        recovered = (each for each in results if not each.stuck)
        found = [(each.id, note) for each in recovered for note in each.notes if note.startswith(beginning)]
        count = len({name for name, _ in found})
        notes += [f"in {count} run(s), as {name}, {note}" for name, note in found[:1]]
    return notes
