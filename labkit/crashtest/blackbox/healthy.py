"""Perform the run without a crash: record the effects, check the rows, and check whether the test sees every write.

If the reader is fast enough, it also reads before each effect, while the pipeline is stopped there.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.crashtest.blackbox.effects import Effect, named_again, unordered
from labkit.crashtest.blackbox.execution import Over, Start
from labkit.crashtest.blackbox.expectation import Expectation, some
from labkit.crashtest.blackbox.folder_changes import Files, changed, files_in, unnamed
from labkit.crashtest.blackbox.random_names import may_be_random, random_names
from labkit.crashtest.blackbox.reading import HelperCommands
from labkit.crashtest.blackbox.runs import Harness, PipelineRun, counted, steady, surely
from labkit.crashtest.blackbox.seeing import Glance, blind_spots, doubts, logs, replaces, showing, unseen_files
from labkit.crashtest.harness.reader import ReaderFailed, ReaderWaits
from labkit.host.file_locks import write_locks
from labkit.host.file_reads import FileReads
from labkit.host.syscalls.calls import CallKind
from labkit.host.syscalls.waiting import others_can_go_on

QUICK_READ = 0.5
"""The reader is called at every effect only if a reading takes at most this many seconds."""
HELD_SECONDS = 4.0
"""The seconds that a reading at an effect may take, far more than a reader needs if it waits for no lock."""
ASLEEP, ASLEEP_SECONDS = 3.0, 0.5
"""A reader that sleeps `ASLEEP` times as long as a usual reading, and at least `ASLEEP_SECONDS`, waits for a lock.

A shorter sleep does not show a lock, because a reader that asks a server sleeps as well.
"""
MOST_SKIPPED = 16
"""The most effects of one family at which the reader is not called in a row.

After 1, 2, 3, ... failed readings at such effects, it is not called at the next 1, 3, 7, ... of them.
"""
READINGS = 3
"""The number of timed readings of the empty store. The fastest counts, because the others probably had to wait."""
ASKING_SECONDS = 180.0
"""The maximum seconds that all readings at the effects of one run may take together."""

SMALLER = ", so the test does not know all effects that make rows readable, and tries fewer of the points after them"


@dataclass(frozen=True)
class Healthy:
    """The results of the run without a crash, from which labkit plans the other runs of the test."""

    run: PipelineRun
    effects: tuple[Effect, ...]
    expectation: Expectation
    doubts: tuple[str, ...]
    showing: frozenset[str]
    """The names of the effects after which the reader returned other rows than before."""
    replaces: bool
    """Whether rows disappeared without a crash, so the pipeline replaces its output by design."""
    notes: tuple[str, ...]
    overtakable: frozenset[str] = frozenset()
    """The names of the effects during which other threads could go on."""
    glances: tuple[Glance, ...] = ()
    """The rows that the reader returned before each effect at which it answered, and at the end."""


class Glances:
    """Calls the user's reader before each system call with a durable effect, while the pipeline is stopped there.

    A slow reader is not called. A reader that had to wait for a lock is not called again while the same files are
    locked. If it were, the load of the machine would decide which calls of the reader succeed, and so which crash
    points the test chooses.
    """

    def __init__(
        self,
        helpers: HelperCommands,
        usual: float,
        watched: Sequence[Path],
        *,
        seconds: float = ASKING_SECONDS,
        looks_at_threads: bool = False,
    ) -> None:
        """Prepare to call the reader, which usually takes `usual` seconds.

        All readings together may take `seconds`. The pipeline may lock files in the folders `watched`. With
        `looks_at_threads`, also find out during which system calls other threads of the pipeline could go on.
        """
        self._helpers, self._usual, self._watched = helpers, usual, watched
        self._shut: frozenset[str] = frozenset()
        """The locks that the pipeline held when the reader last had to wait for one."""
        self._seconds = seconds
        self._left = seconds if usual <= QUICK_READ else 0.0
        self._locked_out: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._looks_at_threads = looks_at_threads
        self.overtakable: set[int] = set()
        """The numbers of the calls, from 0, during which other threads could go on."""
        self.places = 0
        self.taken: list[Glance] = [Glance(0, {})]

    def __call__(self, effect: Effect) -> None:
        """Call the user's reader while the pipeline is stopped before the system call `effect`; store the rows."""
        happened, self.places = self.places, self.places + 1
        if self._looks_at_threads and others_can_go_on(effect.call.pid, effect.call.process):
            self.overtakable.add(happened)
        if self._left <= 0.0:
            return
        self._skipped[effect.family] -= 1
        if self._skipped[effect.family] >= 0:
            return
        begun, locks = time.monotonic(), write_locks(self._watched)
        if locks and locks == self._shut:
            return
        try:
            values = self._helpers.reader.values(HELD_SECONDS, asleep=max(ASLEEP_SECONDS, ASLEEP * self._usual))
            self.taken.append(Glance(happened, counted(values)))
            self._locked_out[effect.family] = 0
        except (ReaderFailed, InvalidInput) as error:  # the readings before and after are compared instead
            if isinstance(error, ReaderWaits):
                self._shut = locks
            self._locked_out[effect.family] += 1
            times = self._locked_out[effect.family]
            self._skipped[effect.family] = min(2**times - 1, MOST_SKIPPED)
        self._left -= time.monotonic() - begun

    def note(self) -> list[str]:
        """Return a note, in a list, if the reader failed or was skipped at some system calls; otherwise []."""
        answered = len(self.taken) - 1
        if answered >= self.places:
            return []
        if self._left > 0.0:
            why = "it was locked out of the store at the others"
        elif self._usual > QUICK_READ:
            why = f"a reading takes {self._usual:.1f} s, more than {QUICK_READ:.1f} s"
        else:
            why = f"all readings together took more than {self._seconds:.0f} s"
        without = "" if self._left > 0.0 else SMALLER
        unseen = "between two answers the test does not see which effect made a row visible (it reads after each kill)"
        return [f"the reader gave an answer at {answered} of {self.places} effects: {why}{without}; {unseen}"]


def healthy(harness: Harness) -> Healthy:
    """Perform the run without a crash, and return what it showed.

    Raises `InvalidInput` if the pipeline or the reader fails, and `ServiceUnavailable` if the pipeline could not be
    started, for example because the machine is too busy.
    """
    expected = harness.helpers.expected()
    usual, made = _empty_store(harness)
    # In this run, the reader is called at every effect, and the first call may create its tables. So that this happens
    # in runs with a crash as well, they begin with a reading.
    harness.reads_first = usual <= QUICK_READ
    looks = bool(harness.settings.extent.late) and not harness.settings.unwatchable
    glances = Glances(harness.helpers, usual, harness.settings.watched, looks_at_threads=looks)
    harness.wanted = expected
    with harness.run("healthy", "no crash") as run, FileReads(harness.settings.watched) as reads:
        before = files_in(harness.settings.watched)
        start = harness.start(run, ask=glances)
        after = files_in(harness.settings.watched)
        _check(harness, start)
        harness.endless = start.over is Over.COMPLETE
        harness.silence = start.silence
        _read(harness, run)
        _name_again(harness, start)
    _check_started(run)
    for folder in harness.settings.watched:
        if not folder.is_dir():
            raise InvalidInput(
                f"--watch {folder}: this folder does not exist, and a run without a crash does not create it; "
                "name a folder that a run writes to."
            )
    if run.unknown:
        raise InvalidInput(
            f"{harness.settings.read_option}: after the first run, in which nothing crashes, the rows could not be "
            f"read reliably: {run.unknown.rstrip('.')}."
        )
    values = run.values
    if not values:
        left = "or the {} process(es) that the command left running do the work: give a command that waits for them"
        remedies = ["make the command and the reader use the same place", *_left_running(start, left)]
        raise InvalidInput(
            f"{harness.settings.read_option}: the reader found no rows after the command had ended well; "
            f"{', '.join(remedies)}."
        )
    _check_emptied(harness)
    notes = [*glances.note(), *made]
    if expected is None or may_be_random(start.effects, run.seconds):
        again = _once_more(harness, values, is_judge=expected is None)
        harness.random = random_names(start.effects, again.effects)
        _name_again(harness, start)
    if expected is None:
        notes.append("no --expected: the rows of the run without a crash were taken for right (two runs left the same)")
    harness.logs = logs(start.effects, reads)
    harness.expectation = harness.settings.expectation(values if expected is None else expected, values)
    altered = changed(before, after, harness.namer(), harness.folder.parent)
    return _concluded(harness, run, glances, notes, unnamed(altered, run.starts[0].effects, before, after))


def _concluded(
    harness: Harness, run: PipelineRun, glances: Glances, notes: Sequence[str], unnamed_files: Sequence[str]
) -> Healthy:
    start, settings = run.starts[0], harness.settings
    effects = start.effects
    glances_taken = [*glances.taken, Glance(len(effects), counted(run.values))]
    blind = blind_spots(start.watched.unseen, start.watched.unseen_paths, harness.namer())
    expectation = harness.expectation
    assert expectation is not None
    by_lines = bool(settings.unwatchable)
    reasons = doubts(glances_taken, effects, blind, settings.watched, harness.logs, by_lines=by_lines)
    sends = any(each.kind is CallKind.SEND for each in effects)
    # A server to which the pipeline sends messages may keep its files in a watched folder.
    if not (by_lines or sends):
        known = {path for paths in blind.values() for path in paths}
        reasons += unseen_files([path for path in unnamed_files if path not in known])
    if len(glances_taken) == 2 and settings.unseen:  # the reader answered at no effect
        reasons.append(settings.unseen)
    if not (by_lines or sends or reasons or harness.endless):
        harness.late = 0.0
    return Healthy(
        run,
        tuple(effects),
        expectation,
        tuple(reasons),
        frozenset(showing(glances_taken, effects, harness.logs | settings.minor(effects))),
        replaces(glances_taken),
        (*notes, *_left_running(start, "the command left {} process(es) running when it ended; they were ended")),
        frozenset(each.name for number, each in enumerate(effects) if number in glances.overtakable),
        tuple(glances_taken),
    )


def _empty_store(harness: Harness) -> tuple[float, list[str]]:
    helpers = harness.helpers
    helpers.begin()
    before = files_in(harness.settings.watched)
    try:
        times = []
        for _ in range(1 + READINGS):
            begun = time.monotonic()
            left = surely(helpers.read, 2.0)
            times.append(time.monotonic() - begun)
    except ReaderFailed as error:
        raise InvalidInput(f"{str(error).rstrip('.')}; the reader must return no rows if the store is empty.") from None
    if left:
        raise InvalidInput(
            f"{harness.settings.read_option}: after reset and feed, before any run, the reader returns {len(left)} "
            f"row(s), such as {some(left, 1)}; let the reset empty the store, the checkpoint and the input."
        )
    # The first reading may import modules, and so does not count.
    return min(times[1:]), _made_by_reader(harness, before)


def _made_by_reader(harness: Harness, before: Files) -> list[str]:
    """Return a note, in a list, if the reader has changed files in the watched folders since `before`; otherwise []."""
    own = harness.folder.parent  # the folder of labkit's own files, such as the reader's log
    paths = changed(before, files_in(harness.settings.watched), harness.namer(), own)
    made = sorted(Path(path).name for path in paths)
    if not made:
        return []
    remedy = "let the reader return no rows where there is no store"
    return [f"the reader writes to {made[0]} in an empty store, so no run tests how the command creates it; {remedy}"]


def _check(harness: Harness, start: Start) -> None:
    name, how_it_ended = harness.settings.named, harness.ending_of(start)
    if start.over is Over.ENDED and start.watched.status != 0:
        alone = harness.settings.run_alone
        raise InvalidInput(f"{name}: without any crash {how_it_ended}. Run {alone} and repair it, then test again.")
    if start.over is Over.STALLED:
        remedy = (
            "rows that are due were still missing then"
            if harness.wanted
            else "a command that never ends needs --expected, so that labkit knows by the rows when it is done"
        )
        raise InvalidInput(f"{name}: without any crash {how_it_ended}; {remedy}.")


def _check_started(run: PipelineRun) -> None:
    if run.unknown and not run.starts:
        raise ServiceUnavailable(run.unknown)


def _check_emptied(harness: Harness) -> None:
    try:
        harness.helpers.reset()
        left = surely(harness.helpers.read, 2.0)
    except ReaderFailed as error:
        why = str(error).rstrip(".")
        raise InvalidInput(
            f"after the run without a crash, labkit could not empty the store for the next run: {why}."
        ) from None
    if left:
        raise InvalidInput(
            f"--reset: the reset left {len(left)} row(s) of the last run, such as {some(left, 1)}; make it empty the "
            "store, the checkpoint and the input."
        )


def _read(harness: Harness, run: PipelineRun) -> None:
    if harness.wanted is not None:
        harness.settle()
    steady(harness.helpers.read)
    harness.look(run, "end")


def _name_again(harness: Harness, start: Start) -> None:
    """Give the effects of the run without a crash new names, because labkit has learned more about the files since.

    For example, it may know by now which parts of file names are random, and which files are written in any order.
    """
    harness.numbered = frozenset()
    if harness.random:
        start.effects = named_again(start.effects, harness.namer())
    harness.numbered = unordered(start.effects)
    if harness.numbered:
        start.effects = named_again(start.effects, harness.namer())


def _once_more(harness: Harness, values: Sequence[Any], *, is_judge: bool) -> Start:
    """Perform a second run without a crash, and return its start.

    With `is_judge`, raises `InvalidInput` if its rows differ from the `values` of the first run, because then labkit
    does not know which are right.
    """
    with harness.run("healthy-2", "no crash, once more") as again:
        start = harness.start(again)
        _check(harness, start)
        _read(harness, again)
    _check_started(again)
    if is_judge and (again.unknown or counted(again.values) != counted(values)):
        raise InvalidInput(
            "two runs without a crash left different rows, so labkit does not know which rows are right; let the "
            "reader leave out columns that differ from run to run, or name the right rows with the option --expected."
        )
    return start


def _left_running(start: Start, sentence: str) -> list[str]:
    emptied = start.watched.emptied
    count = len(emptied.killed) if emptied and start.over is Over.ENDED else 0
    return [sentence.format(count)] if count else []
