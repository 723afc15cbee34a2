"""Watch one start of the pipeline: record its effects, kill it at a crash point, and decide when it is over.

A start is over when its command has ended. If the command never ends by itself, the start is over when every row that
is due can be read and no more effects happen. Any start is over when nothing has happened for too long.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from labkit.core.errors import InvalidInput, JobFailed, LabError
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.lines import Lines
from labkit.crashtest.blackbox.points import EXIT, Point, cuts
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.blackbox.states import RunFiles, State
from labkit.crashtest.blackbox.unsynced import Unsynced
from labkit.crashtest.harness.reader import ReaderFailed
from labkit.host.syscalls.calls import Answer, Call, CallKind, Decision, WatchedRun, Watcher
from labkit.host.syscalls.faults import Fault, TimedFault
from labkit.host.syscalls.waiting import others_can_go_on

SETTLE_SECONDS = 1.0
"""The minimum seconds without an effect after which a command that never ends by itself counts as done."""
PATIENCE = 3.0
"""A start may have no effect for this multiple of the longest such silence in the run without a crash."""
LATE_SECONDS = 3.0
"""The maximum seconds for which labkit holds a call so that other threads can go on."""
EFFECTLESS = 4.0
"""A command that makes system calls, but none with an effect, may go on for this multiple of `--limit`."""

# The beginnings of reasons why a run proves nothing.
NEVER_REACHED = "the run never reached the crash point"
NOT_SUFFERED = "the call did not suffer the fault"
ENDED_MEANWHILE = "while labkit held a call back, the command ended the process of this call, before labkit killed it"


class Over(Enum):
    """The reason why a start (one execution of the pipeline's command) ended, or why labkit ended it."""

    ENDED = "the command ended"
    KILLED = "it was killed at its crash point"
    COMPLETE = "all rows are there and nothing happens any more"
    STALLED = "it did nothing any more"
    OVERDUE = "it still ran after the grace period and was killed"


@dataclass
class Silence:
    """The longest times in seconds without a durable effect: before the first effect, and between two effects."""

    before: float = 0.0
    between: float = 0.0

    def note(self, earlier: float, later: float) -> None:
        """Update `before` or `between` with one silence (time without a durable effect) if it is the longest so far.

        `later` is the time of the effect that ended the silence. `earlier` is the time of the effect before it, or 0.0
        if there was none. Both are in seconds from the start.
        """
        if earlier == 0.0:
            self.before = max(self.before, later)
        else:
            self.between = max(self.between, later - earlier)

    def allowed(self, *, begun: bool) -> float:
        """Return after how many seconds without a durable effect labkit asks whether an endless command is done.

        `begun` says whether the command has already made a durable effect.
        """
        usual = self.between if begun else max(self.before, self.between)
        return SETTLE_SECONDS + PATIENCE * usual


@dataclass
class Start:
    """The record of one start (one execution of the pipeline's command)."""

    effects: list[Effect]
    watched: WatchedRun
    over: Over
    log: Path
    silence: Silence = field(default_factory=Silence)
    states: Mapping[str, State] = field(default_factory=dict)
    """The state of the files before each effect, by the effect's name; also before an effect that a kill prevented."""
    late_from: int | None = None
    """How many effects came before the call that was held while other threads went on; None if no call was held."""
    unmodelled: str = ""
    """What a failed sync loses on a real disk and labkit cannot take back, such as names in a folder; usually empty."""


Note = Callable[[Call], None]
"""A function that is called with each system call that happens, in whatever folder."""

Ask = Callable[[Effect], bool | None]
"""A function that is called before each effect. It returns False if it killed the process, to prevent the effect."""


class Starter(Protocol):
    """A function that chooses how the pipeline's command is started and watched."""

    def __call__(self, *, is_first: bool, exits: bool) -> Watcher:
        """Return the function that starts the pipeline's command and watches it.

        `is_first` says that this is the first start of a run. With `exits`, the process must end when its job has
        ended.
        """


class Stopped(LabError):
    """Raised inside a run when the whole crash test is being stopped."""


@dataclass
class Beside:
    """The values that all parallel runs of a crash test share."""

    meet: Callable[[Call], None] | None = None
    """Called with each system call that has a durable effect, in any folder or on any server; None if not needed."""
    stop: Event = field(default_factory=Event)
    """Stops every run of the test once it is set."""


@dataclass
class Execution:
    """One execution of the pipeline's command. It records system calls, kills at a crash point, and detects the end."""

    settings: PipelineSettings
    namer: Namer
    misses_nothing: Callable[[], bool]
    """Returns whether the reader returns every row that is due; raises `ReaderFailed` if the reader fails."""
    endless: bool | None
    """Whether the command never ends by itself; None before the first run."""
    usual: Silence
    """The longest silences of the run without a crash."""
    beside: Beside
    lines: Lines
    watch: Watcher
    at: Point | None = None
    ask: Ask | None = None
    note: Note | None = None
    files: RunFiles | None = None
    fault: Fault | None = None
    late: bool = False
    """Whether the call at the point `at` is held while the other threads go on, and the kill comes after that."""

    def __post_init__(self) -> None:
        self._held: Call | None = None
        """The call at the point, if it is held while other threads go on; `_late_since` is the time when this began."""
        self._late_since = 0.0
        self._late_from: int | None = None
        self._unsynced = Unsynced()
        self._patient_until = 0.0
        """The time until which a fault may delay a call or a stop, so that silence is no sign of a stuck command."""
        self._states: dict[str, State] = {}
        self._effects: list[Effect] = []
        self._over = Over.ENDED
        self._silence = Silence()
        self._last_call = self._last_effect = self._looked = time.monotonic()

    def run(self, environment: Mapping[str, str], log: Path) -> Start:
        """Start the command, wait until it has ended or was killed, and return the record of this start."""
        watched = self.watch(
            ["/bin/sh", "-c", self.settings.pipeline],
            folder=self.settings.folder,
            environment={**os.environ, **environment},
            output=log,
            decide=self.decide,
            tick=self.tick,
            # Starts without a kill need the contents as well: a recovery shows where a second crash can cut a write.
            contents=self.at is None or self.at.cut > 0,
        )
        self._unsynced.drop()
        if any(each.overdue for each in watched.faults):
            self._over = Over.OVERDUE
        if watched.held is not None:
            self._over = Over.KILLED
            if self.at is not None and self.at.cut:
                write_part(watched.held, self.at.kind_of_cut)
        found = (self._silence, self._states, self._late_from, self._unsynced.unmodelled)
        return Start(self._effects, watched, self._over, log, *found)

    def decide(self, call: Call) -> Decision:
        """Record an intercepted system call, and decide whether it happens, fails, or is the point at which to kill."""
        answer = self._decide(call)
        if answer is Answer.GO_ON or isinstance(answer, TimedFault):
            if self.note is not None:
                self.note(call)
            if self.fault is not None:
                self._unsynced.note(call)
        elif isinstance(answer, Fault):
            self._unsynced.fail(call, answer)
        return answer

    def _decide(self, call: Call) -> Decision:
        self._last_call = time.monotonic()
        if self.beside.meet is not None:
            self.beside.meet(call)
        effect = self.namer.name(call)
        if effect is None:
            return Answer.GO_ON
        effect = self.lines.added(effect, self.settings.folder)
        if self.at is None:
            # The written bytes are not kept, because a run may write more than fits into memory.
            effect = replace(effect, cuts=cuts(call), call=replace(effect.call, content=None))
        before = self._effects[-1].call.seconds if self._effects else 0.0
        if effect.kind is not CallKind.EXIT:
            self._silence.note(before, call.seconds)
        if self.ask is not None and self.ask(effect) is False:
            return Answer.GO_ON
        if self.files is not None:
            self._states[effect.name] = self.files.look(effect, self.namer)
        is_here = self.at is not None and effect.name == self.at.effect
        if is_here and self.late and self._held is None:
            self._held, self._late_since, self._late_from = call, time.monotonic(), len(self._effects)
            self._prevented()
            return Answer.HOLD
        if (is_here and self.fault is None) or (self._held is not None and effect.kind is CallKind.EXIT):
            self._prevented()
            return Answer.KILL
        self._effects.append(effect)
        self._last_call = self._last_effect = time.monotonic()
        return self._injected(self.fault) if is_here and self.fault is not None else Answer.GO_ON

    def _prevented(self) -> None:
        if self.files is not None and not (self.at and self.at.cut):
            self.files.prevented()

    def _injected(self, fault: Fault) -> Decision:
        seconds = {Fault.SIGTERM: self.settings.grace, Fault.DELAY: self.settings.delay}.get(fault)
        if seconds is None:
            return fault
        self._patient_until = time.monotonic() + seconds
        return TimedFault(fault, seconds)

    def tick(self) -> Answer:
        """Return KILL if the command is done or has made no progress for too long, otherwise GO_ON."""
        now, limit = time.monotonic(), self.settings.limit
        if self.beside.stop.is_set():
            raise Stopped("stopped")
        if self._held is not None:
            over = now - self._late_since > LATE_SECONDS
            return Answer.KILL if over or not others_can_go_on(self._held.pid, self._held.process) else Answer.GO_ON
        if now < self._patient_until:
            self._last_call = self._last_effect = now
            return Answer.GO_ON
        if self._is_done(now):
            self._over = Over.COMPLETE
            return Answer.KILL
        quiet = now - self._last_effect
        if now - self._last_call > self._patience(limit) or quiet > self._patience(EFFECTLESS * limit):
            self._over = Over.STALLED
            return Answer.KILL
        return Answer.GO_ON

    def _patience(self, limit: float) -> float:
        return max(limit, PATIENCE * max(self.usual.before, self.usual.between))

    def _is_done(self, now: float) -> bool:
        """Return whether a command that never ends has delivered all rows.

        The reader is asked only after some time without a durable effect; until then, the result is False.
        """
        if self.endless is False:
            return False
        allowed = self.settings.limit
        if self.endless:
            begun = any(each.kind is not CallKind.EXIT for each in self._effects)
            allowed = self.usual.allowed(begun=begun)
        since = max(self._last_effect, self._looked)
        if now - since < allowed:
            return False
        try:
            return self.misses_nothing()
        except (ReaderFailed, InvalidInput):
            return False
        finally:
            self._looked = time.monotonic()


def write_part(call: Call, kind: str = "") -> None:
    """Imitate a large write that SIGKILL cut short: write only the first part of its bytes to the file.

    `call` is the write. It never happened, because the kernel held it until its process was dead. `kind` is one of the
    places that `cuts` returns, and says where the first part ends. Raises `JobFailed` if this write has no such place.
    """
    size = cuts(call).get(kind, 0)
    if not size or call.content is None:
        raise JobFailed(
            "labkit could not imitate a kill within a write, because its bytes could not be read or differ from those "
            "in the run without a crash, so this run proves nothing; repeat the test"
        )
    try:
        with Path(call.path).open("r+b") as file:
            file.seek(call.offset)
            file.write(call.content[:size])
    except OSError as error:
        raise JobFailed(
            f"to imitate a kill within a write to {call.path}, labkit had to write its first part and could not "
            f"({error.strerror}), so this run proves nothing; repeat the test"
        ) from error


def reached(start: Start, at: Point) -> bool:
    """Return whether a start of the pipeline was killed at its crash point `at`.

    A command that never ends by itself counts as having reached its end (`exit`) once all rows are there.
    """
    if start.watched.held is not None:
        return True
    return at.name == EXIT and start.over is Over.COMPLETE


def undelivered(start: Start, at: Point, fault: Fault) -> str:
    """Return why the call at this point did not suffer the fault exactly once; empty if it did."""
    here = {each.call.number for each in start.effects if each.name == at.effect}
    delivered = start.watched.faults
    if not here:
        return NEVER_REACHED
    if len(here) != 1 or len(delivered) != 1 or delivered[0].fault is not fault or delivered[0].call not in here:
        return f"{fault} did not hit the call {at.name} exactly once, so this run proves nothing"
    return delivered[0].failure and f"{NOT_SUFFERED}: {delivered[0].failure}"


def fault_evidence(start: Start, at: Point) -> dict[str, Any]:
    """Return the proof that a call suffered a fault, as a dict for JSON.

    The key `silent` says whether the command reported success in spite of the fault.
    """
    [delivered] = start.watched.faults
    [effect] = [each for each in start.effects if each.name == at.effect]
    return {
        "point": at.name,
        "fault": delivered.fault.value,
        "call": effect.call.name,
        "kind": effect.kind.value,
        "path": effect.call.target or effect.call.path,
        "returned": delivered.returned,
        "status": start.watched.status,
        "overdue": delivered.overdue,
        # A command that ends well because SIGTERM stops it does not claim that its work is done.
        "silent": delivered.fault is not Fault.SIGTERM
        and (start.over is Over.COMPLETE or (start.over is Over.ENDED and start.watched.status == 0)),
        "unmodelled": start.unmodelled,
        "at": start.watched.began + effect.call.seconds,
    }


def evidence(start: Start, at: Point) -> dict[str, Any]:
    """Return the proof of a crash as a dict for JSON: the call that the kill prevented, and the killed processes."""
    held, emptied = start.watched.held, start.watched.emptied
    return {
        "point": at.name,
        "signal": 9,
        "killed": list(emptied.killed) if emptied else [],
        "call": held.name if held else "",
        "path": (held.target or held.path) if held else "",
        "at": emptied.begun if emptied else 0.0,
    }
