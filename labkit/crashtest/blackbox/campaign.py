"""The whole crash test of a pipeline: one run without a crash, a run for each chosen crash point, then second crashes.

    from labkit.crashtest.blackbox.campaign import crash_test_pipeline
    report = crash_test_pipeline("./job.sh", reader="rows.py:read", expected="rows.jsonl")

This module decides which runs happen and in which order; `labkit.crashtest.blackbox.runs` performs them, and
`labkit.core.judge` judges the rows.
"""

import difflib
import uuid
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import dropwhile, islice, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.core.judge import Guarantee, Outcome
from labkit.crashtest.blackbox.alike import alike
from labkit.crashtest.blackbox.copies import FEWEST_RUNS, Shared, at_home, copies, how_many
from labkit.crashtest.blackbox.diagnosis import diagnose, diagnose_fault
from labkit.crashtest.blackbox.execution import ENDED_MEANWHILE, NEVER_REACHED, NOT_SUFFERED, Start
from labkit.crashtest.blackbox.expectation import Expectation
from labkit.crashtest.blackbox.expectation import text as row_text
from labkit.crashtest.blackbox.healthy import Healthy, healthy
from labkit.crashtest.blackbox.jobs import (
    GROWN,
    LATE,
    LATER_AFTER,
    POWER,
    STATE,
    UNREAD,
    crashes_job,
    fault_job,
    grown_input_job,
    late_job,
    later_job,
    loop_job,
    new_input_job,
    older_checkpoint_job,
    outage_job,
    outages,
    paused_job,
    single_job,
    two_instances_job,
    unread_job,
)
from labkit.crashtest.blackbox.points import (
    BORDERS,
    EXIT,
    LOOP,
    NO_STATES,
    SINCE_POINTS,
    THEN,
    Crashes,
    Importance,
    Point,
    Recoveries,
    States,
    behind_sync,
    borders,
    choose,
    effect_of,
    families,
    name_of,
    one_of_each,
    points,
)
from labkit.crashtest.blackbox.reading import HelperCommands
from labkit.crashtest.blackbox.runs import Harness, PipelineRun, late_notes, outage_notes
from labkit.crashtest.blackbox.seeing import log_notes
from labkit.crashtest.blackbox.settings import BETWEEN_LINES, PipelineSettings, pipeline_settings
from labkit.crashtest.blackbox.states import Comparison, State, as_read
from labkit.crashtest.blackbox.story import Line, because, in_their_rows, lines, picture, plain, text
from labkit.crashtest.claim import fault_claims
from labkit.crashtest.harness.leftovers import MARK, own_folder
from labkit.crashtest.harness.reader import ReaderFailed
from labkit.crashtest.ledger import ABOUT, AT_LEAST, EXACT, Job, Ledger, Tell, silent, unknown
from labkit.crashtest.report import Report
from labkit.crashtest.rows import Shape
from labkit.crashtest.samples import Sample, judge_run
from labkit.crashtest.verdict import FAULT_AT, KERNEL, LINES, Group, Result, summarise
from labkit.host.syscalls.calls import CallKind
from labkit.host.syscalls.delivery import fits
from labkit.host.syscalls.faults import Fault
from labkit.host.syscalls.guarding import GuardLate
from labkit.host.syscalls.support import supported

LONGER = "--more: the rows of two runs without a crash count as right afterwards, and both runs may be wrong"
REPLACED = "not judged: aborted_read, since rows disappear and come back even without a crash"
ROUND = 20
"""The number of restarts from new states after which the test looks again for further new states."""
IF_REFUTED = 40
"""The number of restarts from new states at most if a run has already refuted the guarantee."""
STARTS = 2.5
"""The estimated duration of a run with a crash, as a multiple of the run without a crash."""


class Further:
    """Additional runs of a crash test: none in this base class. The test of a Spark sink overrides the methods."""

    def jobs(self, healthy: Healthy) -> Sequence[Job]:
        """Return the additional runs that can be planned as soon as the run without a crash (`healthy`) has ended."""
        return ()

    def last_jobs(self) -> Iterator[Job]:
        """Yield the additional runs at the end of the test; each run may depend on the result of the previous one."""
        yield from ()

    def last_names(self) -> list[str]:
        """Return the ids of the runs of `last_jobs`, each only up to its first dot: `large` for `large.exit`."""
        return []


FIRST_CRASH = "crash 1"
"""The value of `Reading.moment` for the reading after the first crash of a run."""


class FinishedRun(NamedTuple):
    """One finished run of a crash test."""

    job: Job
    run: PipelineRun
    result: Result

    @property
    def is_clear(self) -> bool:
        """Whether the result is neither unknown nor stuck.

        An unknown or stuck result may be due to the load of parallel runs, so the campaign repeats such a run.
        """
        return not self.result.unknown and not self.result.stuck


_MAKING = {"": crashes_job, UNREAD: unread_job, GROWN: grown_input_job}
"""How to make a run with several crashes, by its kind, which is how the run's id begins."""


def _kind(name: str) -> str:
    """Return how the id of a run with crashes begins: `UNREAD`, `GROWN`, or, for all others, an empty text."""
    return next((kind for kind in (UNREAD, GROWN) if name.startswith(kind)), "")


class Campaign:
    """The crash test of one pipeline or sink: chooses the runs, performs them, and reports. Call `healthy` first."""

    def __init__(self, settings: PipelineSettings, harness: Harness, tell: Tell) -> None:
        self.settings, self.harness = settings, harness
        self.most = settings.extent
        if settings.pairs is not None:
            self.most = self.most._replace(pairs=settings.pairs)
        self.ledger = Ledger(settings.seconds or self.most.seconds, tell)
        self.points: dict[str, Point] = {}
        """Every crash point that the run without a crash revealed, by name."""
        self.outage_points: dict[str, Point] = {}
        """Every point at which the power may fail, by name; before syncs as well, since unsynced data can be lost."""
        self.alike: Mapping[str, Hashable] = {}
        """Values by the names of crash points; points with equal values leave equal files, so one of them is enough."""
        self.points_total = 0
        self.pairs: set[str] = set()
        """The ids of all runs with several crashes that are possible."""
        self.directed: frozenset[str] = frozenset()
        """The ids of all pairs that a recovery gives a reason for; a complete test tries every one of them."""
        self.grown: frozenset[str] = frozenset()
        """The ids of all runs with new input between a crash and its restart; a complete test makes every one."""
        self.crashed: dict[Crashes, PipelineRun] = {}
        """The runs with crashes that proved something, except crash loops, by the points of the crashes."""
        self.unread: dict[Crashes, PipelineRun] = {}
        """The same for the runs in which nobody read before the end."""
        self.fed: dict[Crashes, PipelineRun] = {}
        """The same for the runs with new input between the first crash and its restart."""
        self.comparison: Comparison | None = None
        """Compares the states of the files; None before the first second crash is chosen."""
        self.further: Further = Further()
        self._healthy: Healthy | None = None
        self._copies: Sequence[Harness] = ()
        """Copies of the user's folder, in which runs go on in parallel; empty if runs go one at a time."""
        self._stories: dict[str, list[Line]] = {}
        self.is_part = settings.is_selection
        """Whether runs are left out, so that the test never counts as complete."""

    def healthy(self) -> Result:
        """Perform the run without a crash, which shows the crash points, and return its result.

        Raises `InvalidInput` if the pipeline or the reader fails even in this run.
        """
        self.settings.changed()  # refuses a revision of `--since` that does not exist, before anything runs
        self.ledger.tell("run", "a run without a crash, to find the points")
        self._healthy = healthy(self.harness)
        doubts = [*self._healthy.doubts]
        if self.settings.more:
            doubts += self.harness.add_input_without_crash()
        run = self._healthy.run
        self.points = {each.name: each for each in points(self._healthy.effects, within=True)}
        if self.settings.power_cut:
            self.outage_points = {each.name: each for each in points(self._healthy.effects, syncs=True)}
        job = Job("healthy", "no crash", Group.HEALTHY)
        result = self.ledger.keep(self._judged(job, run))
        if doubts:
            seeing = Job("seeing", "what the test sees of the pipeline", Group.SEEING)
            self.ledger.keep(unknown(seeing, "; ".join(doubts)))
        return result

    @property
    def _seen(self) -> Healthy:
        assert self._healthy is not None
        return self._healthy

    def jobs(self) -> list[Job]:
        """Return the runs to make after the run without a crash.

        There is one run for each chosen crash point. Without `--since`, runs of other kinds follow, for example one
        with a second instance of the pipeline.
        """
        seen = self._seen
        chosen = choose(seen.effects, seen.showing, self.most.points, self._last, alike=self.alike, with_cut=True)
        if self.settings.seconds:  # time may run out, so the most important points come first
            planned = {point.name for point in chosen}
            chosen = [point for point in self._ranking.ordered(self.points.values()) if point.name in planned]
        self.points_total = self.points[EXIT].number
        made = {each.id for each in self.results}
        jobs = [single_job(self.points[point.name]) for point in self._since(chosen) if point.name not in made]
        if self.settings.since and not self.settings.only:
            return jobs
        if not self.harness.endless:
            jobs.append(later_job((self.points[EXIT],)))
        if self.settings.pause:
            jobs += map(paused_job, self._telling()[: self.most.paused])
        if self.harness.longer:
            *others, end = self.points.values()
            jobs.append(new_input_job(others[-1] if others else end))
            grown = self._grown_jobs()
            self.grown = frozenset(job.id for job in grown)
            jobs += grown[: min(self.most.grown, len(self._telling()))]
        if self._seen.effects and self.most.conditions:  # an endless command may have no effect in a watched folder
            names = [each.name for each in self._seen.effects]
            jobs.append(two_instances_job(next((each for each in names if each in self._seen.showing), names[0])))
        if self.settings.checkpoint is not None:
            jobs.append(older_checkpoint_job(self._seen.effects))
        return [*jobs, *self.further.jobs(self._seen)]

    @property
    def _last(self) -> frozenset[str]:
        return self.harness.logs | self.settings.minor(self._seen.effects)

    @property
    def _ranking(self) -> Importance:
        return Importance(self._seen.effects, families(self._seen.effects, self._seen.showing), self._last)

    def _telling(self) -> list[Point]:
        """Return the points just after a change of the reader's rows, or before a call that can make rows visible.

        The most important points come first. A rename, for example, can make rows visible.
        """
        ranking = self._ranking
        return [each for each in ranking.ordered(points(self._seen.effects)) if ranking.of(each) <= 1]

    def _grown_jobs(self) -> list[Job]:
        """Return a run with new input after each crash that leaves other files, the most important crashes first."""
        points = one_of_each(self._ranking.ordered(self.points.values()), self.alike)
        telling = [each.name for each in self._telling()]
        return [grown_input_job((each,)) for each in sorted(points, key=lambda each: each.name not in telling)]

    def _since(self, chosen: Sequence[Point]) -> Sequence[Point]:
        """Return the crash points to try: `chosen`, or with `--since` the points at changed lines of Python.

        With `--since`, a few points are added that are important whatever changed.
        """
        changed = self.settings.changed()
        if changed is None:
            return chosen
        few = choose(self._seen.effects, self._seen.showing, SINCE_POINTS, self._last)
        return [point for point in self.points.values() if point in few or point.has_changed(changed)]

    def second_crashes(self, *, every: bool = False) -> list[Job]:
        """Return the runs to make with a second crash in a recovery, a crash loop, or a plain start after a recovery.

        Call this when the runs with one crash are over, because they show what restarts do. With `every`, the list has
        all *directed* second crashes (see `Recoveries.directed`), otherwise a limited number of them, and first the
        runs of `_before_cuts`. With the user's option `--since`, the list has only second crashes and crash loops at
        changed lines of Python.
        """
        recoveries = self.recoveries()
        most = self.most
        chosen, possible, directed = recoveries.pairs(most.pairs, None if every else most.directed)
        looped = recoveries.loops(self.most.loops)
        changed = self.settings.changed()
        if changed is not None:
            chosen = tuple(pair for pair in recoveries.directed() if pair.second.has_changed(changed))
            looped = [point for point in looped if point.has_changed(changed)]
        loops = list(map(loop_job, looped))
        roots = {at[0]: at for at in self._altered_by_reader() if len(at) == 1}
        unread = [unread_job(roots[point]) for point in self._ranking.ordered(roots)]
        late = list(map(late_job, self._overtaken()))
        if changed is not None:
            unread, late = [], []
        self.directed = directed | {job.id for job in (*loops, *unread, *late)}
        self.pairs |= possible | self.directed
        ended = [] if every or changed is not None or self.harness.endless else recoveries.ended_otherwise()
        later = map(later_job, ended[: self.most.ended])
        if not every:
            unread, late = unread[: self.most.unread], late[: self.most.late]
        first = [] if every else self._before_cuts()
        return [*first, *map(crashes_job, chosen), *loops, *later, *unread, *late]

    def _before_cuts(self) -> list[Job]:
        """Return a run with a crash just before each write that did harm when a crash cut it, unless one was made.

        If the crash before the write does no harm, the harm comes from the torn write alone.
        """
        made = {each.id for each in self.results}
        cuts = [self.points[each.id] for each in self.results if each.violated and each.id in self.points]
        whole = dict.fromkeys(point.effect for point in cuts if point.cut)
        return [single_job(self.points[name]) for name in whole if name not in made]

    def _altered_by_reader(self) -> list[Crashes]:
        """Return the crashes of each run whose last crash is the first one after which the reader changed files."""
        altered = {at for at, run in self.crashed.items() if run.altered}
        return [at for at in self.crashed if at in altered and not any(at[:end] in altered for end in range(len(at)))]

    def _overtaken(self) -> list[Point]:
        """Return the points before calls that another thread's next call could overtake, the most important ones first.

        In the run without a crash, other threads could go on while labkit held such a call.
        """
        effects = [each for each in self._seen.effects if each.kind not in (CallKind.SYNC, CallKind.EXIT)]
        names = {
            each.name
            for each, following in pairwise(effects)
            if each.name in self._seen.overtakable and following.call.pid != each.call.pid
        }
        return [each for each in self._ranking.ordered(self.points.values()) if not each.cut and each.effect in names]

    def later_starts(self) -> list[Job]:
        """Return the runs that start the command again, without a crash, after a recovery from several crashes.

        The recovery is one that left unusual files (see `Recoveries.ended_otherwise`).
        """
        ended = [] if self.harness.endless else [at for at in self.recoveries().ended_otherwise() if len(at) > 1]
        return list(map(later_job, ended[: self.most.ended]))

    def recoveries(self, kind: str = "") -> Recoveries:
        """Return the restarts that the runs so far have shown.

        With the kind `UNREAD`, these are the restarts in runs in which the reader was called only at the end. With the
        kind `GROWN`, they are those in runs with new input before the restart; such a restart is another one although
        it may find the same files. Otherwise, they are those in runs with crashes and readings alone.
        """
        effects, harness = self._seen.effects, self.harness
        recovered = {
            each: {at: start for at, run in runs.items() if (start := harness.recovery_of(run)) is not None}
            for each, runs in self._runs().items()
        }
        starts = recovered[kind]
        states = NO_STATES
        if starts and not self.settings.unwatchable:
            self.comparison = comparison = Comparison()
            known = comparison.learn([run.starts[0].states for run in (self.crashed or self.fed).values()])
            like = (GROWN,) if kind == GROWN else ("", UNREAD)
            found = [
                (at, state)
                for each in like
                for at, start in recovered[each].items()
                for state in islice(start.states.values(), 1)
            ]
            known = [] if kind == GROWN else known
            known += [state for at, state in found if kind or len(at) == 1]
            key, order = partial(comparison.key, left_out=self._last), partial(comparison.order, left_out=self._last)
            before = {at: {name: key(each) for name, each in start.states.items()} for at, start in starts.items()}
            orders = {at: {name: order(each) for name, each in start.states.items()} for at, start in starts.items()}
            sends = any(each.kind is CallKind.SEND for each in effects)
            is_whole = not (sends or self._seen.doubts or comparison.blurred())
            written = frozenset((key(each), order(each)) for each in known)
            every = [*known, *(state for start in starts.values() for state in start.states.values())]
            keys = {key(state): state for state in every}
            parts: dict[Hashable, frozenset[Hashable]] = {each: each[0] for each in keys}
            shapes: dict[Hashable, Hashable] = {
                each: comparison.shape(state, self._last) for each, state in keys.items()
            }
            tried = [state for _, state in found]
            restarted = len(frozenset(map(key, tried)))
            if not kind:  # what a crash left counts as tried although the reader has changed it before the restart
                tried += filter(None, (self._left_by(at, starts) for at in starts))
            states = States(
                before,
                frozenset(map(key, known)),
                is_whole,
                orders,
                written,
                parts,
                frozenset(map(key, tried)),
                shapes,
                restarted,
            )
        restarts = {at: start.effects for at, start in starts.items()}
        return Recoveries(restarts, effects, families(effects, self._seen.showing), states)

    def _runs(self) -> dict[str, dict[Crashes, PipelineRun]]:
        return {"": self.crashed, UNREAD: self.unread, GROWN: self.fed}

    def _left_by(self, at: Crashes, starts: Mapping[Crashes, Start]) -> State | None:
        """Return the state in which these crashes left the files; None if the last one cut a write."""
        last = starts.get(at[:-1]) or self.crashed[at].starts[0]
        return last.states.get(at[-1].name)

    def _states(self) -> dict[str, Any]:
        """Return the values of `Coverage` about states of the files; {} if they were not compared."""
        if self.comparison is None or self.is_part:
            return {}
        recoveries, unread = self.recoveries(), self.recoveries(UNREAD)
        unread_left = [at for at in self._altered_by_reader() if at not in self.unread]
        left = len(recoveries.left() | unread.left()) + len(unread_left)
        return {
            "states": recoveries.restarted,
            "states_left": left,
            "closed": recoveries.is_whole and not left,
            "every_state": self.most.every_state,
            "new_in": (recoveries.new_in() or unread.new_in())[:2],
        }

    def _notes_on_states(self) -> list[str]:
        blurred = self.comparison.blurred() if self.comparison else []
        more = f" and {len(blurred) - 3} more" if len(blurred) > 3 else ""
        differ = "differ(s) from run to run, so the contents played no part in the choice of second crashes"
        return [f"{', '.join(blurred[:3])}{more} {differ}"] if blurred else []

    def outages(self) -> list[Job]:
        """Return one job for each chosen point at which the power is to fail; [] without the option `--power-cut`."""
        if not self.settings.power_cut:
            return []
        return list(map(outage_job, choose(self._seen.effects, self._seen.showing, self.most.outages, syncs=True)))

    def faults(self, *, every: bool = False) -> list[Job]:
        """Return the runs in which one system call suffers a fault that the user asked for, such as a write error.

        Without `every`, there are runs only for the calls at which the fault is most likely to do damage.
        """
        if self.settings.since and not self.settings.only:
            return []
        most = None if every else self.most.faults
        return [fault_job(point, fault) for fault in self.settings.faults for point in self._able(fault)[:most]]

    def _able(self, fault: Fault) -> list[Point]:
        effects = self._seen.effects
        able = {each.name for each in effects if fits(fault, each.call)}
        return [point for point in self._ranking.ordered(points(effects, syncs=True)) if point.name in able]

    def _cut_power(self, job: Job) -> None:
        """Crash at the point that `job` names, and restart from each state that a power cut there may leave."""
        if self.ledger.is_over():
            self.ledger.planned += 1
            self.ledger.skip(job)
            return
        self.ledger.begin(job)
        at = self.outage_points[job.id.removeprefix(POWER)]
        for _ in range(2):  # once more if the first run does not reach the point
            with self.harness.run(job.id, job.title) as run:
                for after in outages(self.harness, run, at):
                    each = Job(after.id, after.title, Group.POWER)
                    self.ledger.planned += 1
                    self.ledger.keep(self._judged(each, after))
            if NEVER_REACHED not in run.unknown:
                break
        if run.unknown:
            self.ledger.planned += 1
            self.ledger.keep(unknown(job, run.unknown))

    def last_jobs(self) -> Iterator[Job]:
        """Yield the runs that depend on all earlier runs; with `--only` or `--since`, these are left out.

        If the pipeline keeps state outside of the watched folders, always yield one more job. It starts no process; its
        only purpose is a result that makes the guarantee unknown.
        """
        if not self.settings.is_selection:
            yield from self.further.last_jobs()
        if self.harness.outside.states:
            yield Job("outside", "what the pipeline keeps outside of the watched folders", Group.SEEING)

    @property
    def results(self) -> list[Result]:
        return self.ledger.results

    def run(self, job: Job) -> Result:
        """Perform one run, compare the rows that it leaves with the expected rows, and return the result."""
        if job.group is Group.SEEING:
            return self.ledger.keep(unknown(job, self.harness.outside.doubt()))
        self.ledger.plan(job)
        if self.ledger.is_over():
            return self.ledger.skip(job)
        return self._keep(self._finished_run(job, self.harness))

    def _finished_run(self, job: Job, harness: Harness) -> "FinishedRun":
        run = self._try(job, harness)
        if NEVER_REACHED in run.result.unknown:
            note = "the first run did not pass the point and was made once more"
            run = self._try(job, harness)
            run = run._replace(result=replace(run.result, notes=(note,)))
        return run

    def _try(self, job: Job, harness: Harness) -> "FinishedRun":
        assert job.perform is not None
        self.ledger.begin(job)
        with harness.run(job.id, job.title) as run:
            job.perform(harness, run)
        return FinishedRun(job, run, self._judged(job, run))

    def _keep(self, finished: "FinishedRun") -> Result:
        job, run, result = finished
        if job.crashes and not run.unknown:
            self._runs()[_kind(job.id)][job.crashes] = run
            if job.id == EXIT:
                self._learn_alike(run.starts[0])
        return self.ledger.keep(result)

    def _learn_alike(self, start: Start) -> None:
        """Find the crash points that leave equal files, from a start that was killed at its end.

        The run without a crash does not show this, because labkit does not read the pipeline's files there.
        """
        if not (self._seen.doubts or self.harness.endless or self.settings.unwatchable):
            immaterial = self.settings.immaterial(start.effects)
            self.alike = alike(self.points.values(), start.effects, start.states, immaterial)

    def run_all(self, jobs: Iterable[Job]) -> list[Result]:
        """Perform the runs, in parallel if there are copies of the user's folder, and return their results."""
        kept = len(self.results)
        if self._copies:
            self._run_beside(list(jobs))
        else:
            for job in jobs:
                if job.group is Group.POWER:
                    self._cut_power(job)
                else:
                    self.run(job)
        return self.results[kept:]

    def _run_beside(self, jobs: Sequence[Job]) -> None:
        """Perform the runs in parallel, and store their results in the order of `jobs`.

        A run with the result unknown or stuck is repeated alone, because the load of the parallel runs may be the
        reason.
        """
        free: SimpleQueue[Harness] = SimpleQueue()
        for each in self._copies:
            free.put(each)

        def make(job: Job) -> FinishedRun | None:
            copy = free.get()
            try:
                if self.ledger.is_over():
                    return None
                run = self._finished_run(job, copy)
                copy_folder, folder = copy.settings.folder, self.settings.folder
                return run._replace(result=at_home(run.result, copy_folder, folder))
            finally:
                free.put(copy)

        again: list[tuple[Job, FinishedRun | None]] = []
        with ThreadPoolExecutor(len(self._copies)) as pool:
            futures = [pool.submit(make, job) for job in jobs]
            try:
                for job, future in zip(jobs, futures, strict=True):
                    run = future.result()
                    if again or run is None or not run.is_clear:
                        again.append((job, run))
                    else:
                        self._keep_planned(run)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for each in self._copies:
                    each.beside.stop.set()
                self._keep_ended(futures)
                raise
        self.harness.add_findings(self._copies)
        for job, run in again:
            if run is None or not run.is_clear:
                self.run(job)
            else:
                self._keep_planned(run)

    def _keep_ended(self, futures: Sequence[Future[FinishedRun | None]]) -> None:
        kept = {each.id for each in self.results}
        ended = [each for each in futures if each.done() and not each.cancelled() and each.exception() is None]
        for run in (each.result() for each in ended):
            if run is not None and run.is_clear and run.job.id not in kept:
                self._keep_planned(run)

    def _keep_planned(self, run: FinishedRun) -> None:
        self.ledger.plan(run.job)
        self._keep(run)

    def _judged(self, job: Job, run: PipelineRun) -> Result:
        story = lines(run)
        self._stories[job.id] = story
        # Threads may run in another order, so that a restart makes other calls. Such a run counts as not tried.
        is_elsewhere = run.unknown.startswith(NEVER_REACHED) and (
            (job.group is Group.PAIR and bool(run.crashes)) or job.id.startswith(LATE)
        )
        result = Result(
            job.id,
            job.title,
            job.group,
            stuck=run.stuck,
            unknown=run.unknown,
            skipped=is_elsewhere or run.unknown.startswith((NOT_SUFFERED, ENDED_MEANWHILE)),
            evidence=run.crashes,
            notes=tuple(run.notes),
            story=text(story),
            seconds=run.seconds,
        )
        if result.unknown or not run.readings:
            return result
        expectation = run.expectation or self._seen.expectation
        samples = [
            Sample(
                each.at,
                each.start,
                expectation.seen(each.values if number >= run.grown else self._unchanged(each.values, expectation)),
                each.moment,
                self._unfinished(run) if each.moment == FIRST_CRASH else (),
            )
            for number, each in enumerate(run.readings)
        ]
        if self._seen.replaces and expectation.history_shape is Shape.ROWS:
            samples = samples[-1:]  # the pipeline replaces rows by design, so earlier readings prove nothing
        due = expectation.rows.expected()
        if run.stuck:
            present = {row.id for sample in samples for row in sample.seen}
            due = [record for record in due if record.offset in present]
        verdict, explanation = judge_run(samples, expectation.rows, expectation.history_shape, due)
        message = because(verdict, expectation.by_offset, len(due))
        explanation = in_their_rows(explanation, expectation.by_offset)
        return replace(result, verdict=replace(verdict, because=message), explanation=explanation)

    def _unchanged(self, values: Sequence[Any], longer: Expectation) -> list[Any]:
        """Return those rows of `values` that the new input, added in a run, does not replace.

        `values` were read before labkit added the new input. `longer` has the rows that are expected afterwards: an
        earlier expected row that is missing in `longer` counts as replaced.
        """
        replaced = set(map(row_text, self._seen.expectation.values)) - set(map(row_text, longer.values))
        return [row for row in values if row_text(row) not in replaced]

    def _unfinished(self, run: PipelineRun) -> tuple[int, ...]:
        if not run.crashes or run.expectation is not None:  # with an expectation of its own, a run has other batches
            return ()
        at = effect_of(run.crashes[0]["point"])
        batches = self.settings.unfinished(self._seen.effects, at)
        return () if batches and self._was_finished(run, at) else batches

    def _was_finished(self, run: PipelineRun, at: str) -> bool:
        """Return whether the batch was already complete when the sink was killed before the call `at`.

        This is so if the files, as SQLite reads them, are the same before the call as at the end of the batch. Both
        states come from the run with a crash at the command's end. If there is no such run, as with `--only`, or if the
        test may have missed a write, the files at the kill are compared with those at the end of a restart's batch.
        """
        if (whole := self.crashed.get((self.points[EXIT],))) is not None and not self._seen.doubts:
            states = whole.starts[0].states
            rest = dropwhile(lambda each: each.name != at, self._seen.effects)
            before, after = states.get(at), states.get(self.settings.batch_end(rest))
        else:
            killed, *restarts = run.starts
            ends = ((each.states, self.settings.batch_end(each.effects)) for each in restarts)
            before = killed.states.get(at)
            after = next((states.get(end) for states, end in ends if end), None)
        immaterial = self.settings.immaterial(self._seen.effects)
        if before is None or after is None:
            return False
        return as_read(before, immaterial) == as_read(after, immaterial)

    def everything(self) -> Report:
        """Perform the whole crash test that the settings describe, and return the report."""
        first = self.healthy()
        if not first.violated:
            self.crash_at_end()
            jobs, only = self.jobs(), self.settings.only
            with self._beside(self.plan(jobs)):
                for several in self._wanted(jobs):
                    self.run_all(self.allowed(several))
                if not only:
                    self.run_all(self.allowed(self.faults()))
                for several in self.rest():
                    self.run_all(several)
            self.run_all(self.outages() if not only else ())
            self.run_all(self.last_jobs())
        return self.report()

    def crash_at_end(self) -> list[Result]:
        """Perform the run with a crash at the command's end, and return its result in a list.

        Call this before `jobs`: the run shows which crash points leave equal files, so that one of them is enough. With
        `--only` or `--since`, do nothing and return [].
        """
        if self.settings.is_selection:
            return []
        self.plan(self.jobs())
        return [self.run(single_job(self.points[EXIT]))]

    def plan(self, jobs: Sequence[Job]) -> int:
        """Set the time budget for the planned runs `jobs`; return how many runs the test may perform in total."""
        more = self.most.pairs + self.most.directed + len(self.faults()) + self._at_the_end()
        runs = sum(1 + (THEN in name) for name in self.settings.only) or len(jobs) + more
        self._allow(runs)
        self.ledger.sureness = EXACT if self.settings.only else ABOUT
        return runs

    def allowed(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Raise the time budget, if necessary, so that there is time for all of `jobs`; return `jobs` unchanged."""
        self._allow(self.ledger.begun + len(jobs))
        return jobs

    def _at_the_end(self) -> int:
        """Return how many jobs may come at the end: one for each point of a power cut, and those with a large batch."""
        large = 1 + self.most.large if self.further.last_names() and not self.settings.is_selection else 0
        return len(self.outages()) + large

    def _allow(self, runs: int) -> None:
        self.ledger.total = max(self.ledger.total, 1 + runs)
        if not self.settings.seconds:
            self.ledger.budget = max(self.ledger.budget, 2 * STARTS * self._seen.run.seconds * runs)

    @contextmanager
    def _beside(self, runs: int) -> Iterator[None]:
        count = min(how_many(self.settings), runs)
        with ExitStack() as stack:
            if count > 1 and runs >= FEWEST_RUNS and not self.settings.only:
                apart = self.harness.folder.parent
                context = copies(self.harness, self._seen, count, apart)
                try:
                    self._copies = stack.enter_context(context)
                    message = f"{count} runs at a time, each in a copy of this folder"
                except (Shared, ReaderFailed, GuardLate) as why:
                    message = f"one run at a time: {str(why).rstrip('.')}"
                self.ledger.tell("done", message)
            self.ledger.side_by_side = max(1, len(self._copies))
            yield
        self._copies = ()

    def _wanted(self, jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
        """Yield groups of independent runs: the planned runs, or, with `--only`, the runs that the option needs."""
        if not self.settings.only:
            yield jobs
            pairs = self.second_crashes()
            # A whole test goes on until no new state of the files is known, so nobody knows the number of its runs.
            self.ledger.sureness = AT_LEAST if self.most.states else EXACT
            self.ledger.total = 1 + self.ledger.begun + len(pairs) + self._at_the_end()
            yield pairs
        for several in [self.named(name, jobs) for name in self.settings.only]:
            for job in several:
                yield [job]

    def rest(self) -> Iterator[Sequence[Job]]:
        """Yield further runs until the time budget is spent; none with `--quick`, `--since` or `--only`.

        First come untried crash points, then untried *directed* second crashes (see `Recoveries.directed`), then
        crashes that leave new states of the files, and finally random second crashes, whose number `--pairs` limits.
        """
        if self.settings.quick or self.settings.is_selection:
            return
        yield from self._while_time(list(map(single_job, self._points_left())))
        jobs = self.second_crashes(every=True)
        tried = {each.id for each in self.results if each.group is Group.PAIR}
        made = {each.id for each in self.results}
        yield from self._while_time([job for job in jobs if job.id in self.directed - made])
        grown = self._grown_jobs() if self.grown - made else []
        yield from self._while_time([job for job in grown if job.id not in made])
        left = self.most.pairs - len(tried - self.directed)
        others = [job for job in jobs if job.id not in self.directed | tried]
        yield from self._while_time(self.later_starts())
        yield from self._until_closed()
        yield from self._while_time(others[: max(left, 0)])

    def _points_left(self) -> list[Point]:
        """Return the crash points still to be tried; of several points that leave equal files, one is enough."""
        tried, proven = {each.id for each in self.results}, self._proven()
        left = (point for name, point in self.points.items() if name not in tried)
        return one_of_each((point for point in left if self.alike.get(point.name) not in proven), self.alike)

    def _proven(self) -> set[Hashable]:
        """Return the values in `alike` of the crash points that were tried and whose run has a known result."""
        proven = (each.id for each in self.results if each.group is Group.CRASH and not each.unknown)
        return {self.alike[name] for name in proven if name in self.alike}

    def _like_others(self) -> int:
        """Return how many crash points need no run, because they leave the same files as a point that had a run."""
        tried = {each.id for each in self.results if not each.unknown}
        proven = self._proven()
        return sum(value in proven for name, value in self.alike.items() if name not in tried)

    def _until_closed(self) -> Iterator[Sequence[Job]]:
        """Yield runs that restart from new states of the files, until no such state is known or a limit is reached."""
        made = Counter[str]()
        while not self.ledger.is_over():
            limits = {UNREAD: self.most.unread, "": self.most.states, GROWN: self.most.states}
            if self._is_refuted() and not self.settings.exhaustive:
                limits = {kind: min(most, IF_REFUTED) for kind, most in limits.items()}
            jobs = [self.new_states(kind)[: max(most - made[kind], 0)] for kind, most in limits.items()]
            self.ledger.total = max(self.ledger.total, 1 + self.ledger.begun + sum(map(len, jobs)))
            several = [job for each in jobs for job in each[:ROUND]]
            if not several:
                return
            made.update(_kind(job.id) for job in several)
            # `Coverage.states_left` does not count these. What a cut write leaves is not known before the run.
            self.directed |= {job.id for job in several if job.crashes[-1].cut or _kind(job.id) == GROWN}
            yield from self._while_time(several)

    def _is_refuted(self) -> bool:
        kept = (Guarantee.EXACTLY_ONCE, Guarantee.UNKNOWN)
        return any(each.stuck or each.guarantee not in kept for each in self.results if not each.group.is_apart)

    def new_states(self, kind: str = "") -> list[Job]:
        """Return runs with several crashes that leave the files in a state from which no run has restarted yet.

        With the kind `UNREAD`, these runs call the reader only at their end. This matters if the reader itself changes
        files. With the kind `GROWN`, they have one crash before new input comes and one after it; if the pipeline also
        keeps state elsewhere, these are the directed pairs.
        """
        made = {each.id.removeprefix(kind) for each in self.results if _kind(each.id) == kind}
        recoveries = self.recoveries(kind)
        found = recoveries.new_states(made)
        if kind == UNREAD:
            found = [*(at for at in self._altered_by_reader() if len(at) > 1), *found]
        if kind == GROWN:
            found = [at for at in found if len(at) == 2] if recoveries.is_whole else [*recoveries.directed()]
        return [_MAKING[kind](at) for at in found if name_of(at) not in made]

    def _while_time(self, jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
        several = max(1, len(self._copies))
        for begin in range(0, len(jobs), several):
            if self.ledger.is_over():
                return
            yield jobs[begin : begin + several]

    def named(self, name: str, jobs: Sequence[Job] | None = None) -> Iterator[Job]:
        """Return the runs that `--only NAME` needs, in order: a second crash needs the run with only the first one.

        `jobs` are the planned runs. Raises `InvalidInput` if no run has the id `name`. For an id with several crashes,
        such as `A then B`, labkit knows only after the run `A` whether its restart reaches `B`. So the error about `B`
        comes later, while the caller iterates over the result.
        """
        jobs = [*(self.jobs() if jobs is None else jobs), *self.faults(every=True)]
        is_fault = name in self.settings.faults
        places = [point for point in self.points.values() if point.name != EXIT]
        every = [
            *jobs,
            *(later_job((place,)) for place in places),
            *map(paused_job, self.points.values()),
            *(unread_job((place,)) for place in self.points.values()),
            *map(late_job, places),
        ]
        named = list({job.id: job for job in every if job.id == name or (is_fault and job.fault == name)}.values())
        if named or is_fault:  # without any run if no call can suffer this fault
            return iter(named)
        if name.partition(".")[0] in self.further.last_names():
            return self._one_further(name)
        kind = name.partition(FAULT_AT)[0]
        if kind in [*Fault] and kind not in self.settings.faults:
            raise InvalidInput(
                f"--only {name}: this run injects a fault; add --fault {kind}, because labkit injects only the faults "
                "that this option names."
            )
        # If several points are at the line, the first one counts.
        first = name.removeprefix(LATER_AFTER).removeprefix(_kind(name)).partition(THEN)[0]
        point = next((each for each in self.points.values() if each.is_called(first)), None)
        if point is not None and (_kind(name) != GROWN or self.harness.longer):
            return self._from(point, name)
        place, known = name.partition(THEN)[0], [*self.points]
        if kind in self.settings.faults:
            place, known = name, [job.id for job in jobs if job.fault == kind]
        if self.settings.power_cut and name.startswith(POWER):
            place, known = place.removeprefix(POWER).partition(STATE)[0], [*self.outage_points]
            if place in self.outage_points:
                return iter([outage_job(self.outage_points[place])])
        if following := behind_sync(self._seen.effects, place):
            raise InvalidInput(
                f"--only {name}: labkit does not kill before a sync, because a sync does not change the files that "
                f"a kill leaves; choose {following!r}."
            )
        close = difflib.get_close_matches(place, known, n=1, cutoff=0.5)
        others = [job.id for job in jobs if job.id not in self.points] + self.further.last_names()
        known_ids = f"did you mean {close[0]!r}?" if close else f"the other runs are {', '.join(others)}."
        raise InvalidInput(
            f"--only {name}: the run without a crash does not pass this crash point (--dry lists all crash points); "
            f"{known_ids}"
        )

    def _from(self, point: Point, name: str) -> Iterator[Job]:
        """Yield the runs that lead to the run called `name`, whose first crash is at `point`.

        The first run has only this crash. Each further run has one crash more, and the last one is the run called
        `name`. The caller must perform each run before it asks for the next one, because only the run's restart shows
        the place of the next crash.
        """
        kind = _kind(name)
        first, *later = name.removeprefix(LATER_AFTER).removeprefix(kind).split(THEN)
        make, made = _MAKING[kind], self._runs()[kind]
        yield make((point,)) if kind else single_job(point)
        if name == THEN.join([first] * LOOP):
            yield loop_job(point)
            return
        crashes: Crashes = (point,)
        for wanted in later:
            recovery = self.harness.recovery_of(made[crashes]) if crashes in made else None
            places = points(recovery.effects if recovery else (), within=True)
            passed = [each for each in places if each.is_called(wanted)]
            if not passed:
                place = THEN.join(each.name for each in crashes)
                raise InvalidInput(
                    f"--only {name}: the restart after a crash at {place} does not pass the crash point {wanted}; "
                    "choose an id from the report of a whole test."
                )
            crashes = (*crashes, passed[0])
            yield make(crashes)
        if name.startswith(LATER_AFTER):
            yield later_job(crashes)

    def _one_further(self, name: str) -> Iterator[Job]:
        for job in self.further.last_jobs():
            if job.id == name or name.startswith(f"{job.id}."):
                yield job
            if job.id == name:
                return
        raise InvalidInput(
            f"--only {name}: the test has no run with this id this time. The results of earlier runs decide which runs "
            "follow, so these ids may change from test to test; choose an id from the report of a whole test."
        )

    def listing(self) -> list[dict[str, str]]:
        """Return the crash points and the other runs that are known in advance, as dicts with `id` and `line`.

        For a crash point, `line` is its line of Python (empty if unknown), for another run its title.
        """
        jobs = [*self.jobs(), *self.faults(every=True)]
        ids = {job.id for job in jobs}
        places = [each for each in self.points.values() if each.name in ids or not self.settings.quick]
        listed = [{"id": each.name, "line": str(each.line or "")} for each in places]
        listed += [{"id": job.id, "line": job.title} for job in jobs if job.id not in self.points]
        return [*listed, *({"id": name, "line": "and crashes in it"} for name in self.further.last_names())]

    def stopped(self) -> Report | None:
        """Return the report of a test that was stopped early; None if not even the first run had ended."""
        if not self.results:
            return None
        self.is_part = True
        self.ledger.forget_unmade()
        made = sum(each.group is not Group.SEEING for each in self.results)
        job = Job("stopped", "the rest of the test", Group.SEEING)
        wrong = any(each.violated and not each.group.is_apart for each in self.results)
        so_far = "" if wrong else "; until then, nothing was wrong"
        message = f"the test was stopped after {made} of about {self.ledger.total} runs{so_far}"
        self.ledger.results.append(unknown(job, message))
        return self.report()

    def report(self) -> Report:
        """Return the report on all runs so far."""
        settings, harness, seen = self.settings, self.harness, self._seen
        unjudged = settings.unjudged(seen.effects)
        left = () if self.is_part else self.new_states(GROWN)
        directed = self.directed | self.grown | {job.id for job in left}
        coverage = replace(
            self.ledger.coverage(self.pairs, directed, found=self.points_total),
            sampled_writes=sum(len(borders(each.call)) > BORDERS for each in seen.effects),
            selected=self.is_part,
            between_lines=bool(settings.unwatchable),
            alike=self._like_others(),
            **self._states(),
        )
        replaced = ["aborted_read"] if seen.replaces else []
        faults = {fault.value: len(self._able(fault)) for fault in settings.faults}
        summary = summarise(self.results, coverage, [*unjudged, *replaced], faults)
        notes = [
            *([BETWEEN_LINES.format(why=settings.unwatchable.rstrip("."))] if settings.unwatchable else []),
            *(*seen.notes, *harness.outside.notes(), *log_notes(seen.effects, harness.logs)),
            *(*outage_notes(self.results), *late_notes(self.results)),
            *(*harness.leftover_notes, *harness.lines.notes(), *self._notes_on_states()),
            *([LONGER] if settings.more else []),
            *(f"{each.title}: {note}" for each in self.results if each.group is Group.LARGE for note in each.notes),
            *([REPLACED] if seen.replaces and summary.axes["aborted_read"] is Outcome.UNKNOWN else []),
            *([f"not judged: {' and '.join(unjudged)}, since {settings.WHY_UNJUDGED}"] if unjudged else []),
        ]
        weakest = summary.weakest
        worst = [each.worst for each in fault_claims(summary) if each.worst is not None]
        return Report(
            settings,
            settings.adapter,
            LINES if settings.unwatchable else KERNEL,
            seen.expectation.shape,
            summary,
            tuple(plain(seen.effects)),
            diagnose(summary, self.points, settings.decides, {each.name: each.file for each in seen.effects}),
            {each.fault: diagnose_fault(each) for each in worst},
            picture(self._stories[weakest.id], weakest.title) if weakest and weakest.id in self._stories else "",
            tuple(dict.fromkeys(notes)),
            settings.untested(self.results),
        )


@contextmanager
def pipeline_campaign(
    settings: PipelineSettings, folder: Path | None = None, tell: Tell = silent
) -> Iterator[Campaign]:
    """Provide the crash test of a pipeline, in a `with` block.

    At the end the store is emptied and every process of the test is killed. The logs of the runs go to `folder`, by
    default a temporary folder. `tell` is called with each progress message.
    """
    if not settings.unwatchable and (why := supported()):
        raise ServiceUnavailable(why)
    if settings.faults and settings.unwatchable:
        raise InvalidInput(
            "--fault: on this machine labkit cannot stop a system call before it happens, so it cannot inject a fault. "
            f"{settings.unwatchable}"
        )
    with ExitStack() as stack:
        place = folder or stack.enter_context(own_folder())
        place.mkdir(parents=True, exist_ok=True)
        place = place.resolve()
        mark = uuid.uuid4().hex
        helpers = stack.enter_context(HelperCommands(settings, place, {MARK: mark}))
        harness = Harness(settings, helpers, place / "runs", mark)
        try:
            yield Campaign(settings, harness, tell)
        finally:
            with suppress(ReaderFailed, InvalidInput, JobFailed, GuardLate):
                helpers.reset()


def crash_test_pipeline(command: str, *, folder: Path | None = None, tell: Tell = silent, **more: Any) -> Report:
    """Run the crash test of the pipeline that the shell command `command` starts, and return the report.

    The logs go to `folder`, by default a temporary folder. `tell` is called with each progress message. `more` are
    further options, those of `pipeline_settings`. Raises `InvalidInput` if the command, the reader or the store does
    not work.
    """
    settings = pipeline_settings(command, **more)
    with pipeline_campaign(settings, folder, tell) as running:
        return running.everything()
