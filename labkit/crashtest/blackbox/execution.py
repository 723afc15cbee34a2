"""One start of the pipeline under watch: what it does, where it is killed, and when it is over.

It is over when the command has ended; a command that never ends by itself, when every row that is due is there and
nothing happens any more; and either when nothing has happened for too long. This module must not judge, and must not
choose where to kill.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.points import EXIT, Point
from labkit.crashtest.blackbox.power_cut import Journal, recorded
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.harness.reader import ReaderFailed
from labkit.host.syscalls.calls import Answer, Call, CallKind, WatchedRun
from labkit.host.syscalls.watching import watch

SETTLE_SECONDS = 1.0
"""How long nothing may happen, at least, before a command that never ends is said to have done all."""
PATIENCE = 3.0
"""How much longer than in the run without a crash it may do nothing."""
EFFECTLESS = 4.0
"""A command that goes on asking the kernel, and changes nothing that counts, has so many times the limit."""


class Over(Enum):
    """Why a start of the pipeline is over."""

    ENDED = "the command ended"
    KILLED = "it was killed at its point"
    COMPLETE = "all rows are there and nothing happens any more"
    STALLED = "it did nothing any more"


@dataclass
class Silence:
    """How long a run without a crash did nothing, in seconds: before its first effect, and between two effects."""

    before: float = 0.0
    between: float = 0.0

    def note(self, earlier: float, later: float) -> None:
        """Takes in two neighbouring effects (0.0: the start)."""
        if earlier == 0.0:
            self.before = max(self.before, later)
        else:
            self.between = max(self.between, later - earlier)

    def allowed(self, *, begun: bool) -> float:
        """How long nothing may happen before a command that never ends has done all."""
        usual = self.between if begun else max(self.before, self.between)
        return SETTLE_SECONDS + PATIENCE * usual


@dataclass
class Start:
    """One start of the pipeline, over."""

    effects: list[Effect]
    watched: WatchedRun
    over: Over
    log: Path
    silence: Silence = field(default_factory=Silence)


@dataclass
class Expected:
    """What a start is to be compared with while it goes on."""

    misses_nothing: Callable[[], bool]
    """Whether every row that is due can be read. May raise `ReaderFailed`: then it cannot be said now."""
    endless: bool | None = None
    """Whether the command never ends by itself; None: nobody knows yet."""
    silence: Silence = field(default_factory=Silence)
    """Of the run without a crash."""


Ask = Callable[[Effect], None]
"""Told each effect before it happens, while it is held."""


class Execution:
    """One start under way."""

    def __init__(
        self,
        settings: PipelineSettings,
        namer: Namer,
        expected: Expected,
        at: Point | None = None,
        ask: Ask | None = None,
    ) -> None:
        self._settings, self._namer, self._expected = settings, namer, expected
        self._at, self._ask = at, ask
        self._effects: list[Effect] = []
        self._over = Over.ENDED
        self._silence = Silence()
        self._begun = time.monotonic()
        self._last_call = self._last_effect = self._looked = self._begun

    def run(self, environment: Mapping[str, str], log: Path) -> Start:
        """Starts the command and sees it out."""
        watched = watch(
            self._command,
            folder=self._settings.folder,
            environment={**os.environ, **environment},
            output=log,
            decide=self.decide,
            tick=self.tick,
        )
        return self._over_with(watched, log)

    @contextmanager
    def recorded(
        self, environment: Mapping[str, str], log: Path
    ) -> Iterator[tuple[Start, Journal]]:
        """The same, for a block, with everything that a loss of power may leave of it."""
        with recorded(
            self._command,
            self._settings.watched,
            at=self._settings.folder,
            environment={**os.environ, **environment},
            output=log,
            decide=self.decide,
            tick=self.tick,
        ) as journal:
            yield self._over_with(journal.watched, log), journal

    @property
    def _command(self) -> list[str]:
        return ["/bin/sh", "-c", self._settings.pipeline]

    def _over_with(self, watched: WatchedRun, log: Path) -> Start:
        if watched.held is not None:
            self._over = Over.KILLED
        return Start(self._effects, watched, self._over, log, self._silence)

    def decide(self, call: Call) -> Answer:
        """Whether a call may happen."""
        self._last_call = time.monotonic()
        effect = self._namer.name(call)
        if effect is None:
            return Answer.GO_ON
        before = self._effects[-1].call.seconds if self._effects else 0.0
        if effect.kind is not CallKind.EXIT:
            self._silence.note(before, call.seconds)
        if self._ask is not None:
            self._ask(effect)
        if self._at is not None and effect.name == self._at.name:
            return Answer.KILL
        self._effects.append(effect)
        self._last_call = self._last_effect = time.monotonic()
        return Answer.GO_ON

    def tick(self) -> Answer:
        """Whether to go on waiting."""
        now, limit = time.monotonic(), self._settings.limit
        if self._is_done(now):
            self._over = Over.COMPLETE
            return Answer.KILL
        quiet = now - self._last_effect
        if now - self._last_call > self._patience(limit) or quiet > self._patience(
            EFFECTLESS * limit
        ):
            self._over = Over.STALLED
            return Answer.KILL
        return Answer.GO_ON

    def _patience(self, limit: float) -> float:
        usual = max(self._expected.silence.before, self._expected.silence.between)
        return max(limit, PATIENCE * usual)

    def _is_done(self, now: float) -> bool:
        """Whether a command that never ends has done all. A reader is asked once in each such span of silence."""
        if self._expected.endless is False:
            return False
        allowed = self._settings.limit
        if self._expected.endless:
            begun = any(each.kind is not CallKind.EXIT for each in self._effects)
            allowed = self._expected.silence.allowed(begun=begun)
        since = max(self._last_effect, self._looked)
        if now - since < allowed:
            return False
        try:
            return self._expected.misses_nothing()
        except (ReaderFailed, InvalidInput):
            return False
        finally:
            self._looked = time.monotonic()


def reached(start: Start, at: Point) -> bool:
    """Whether a start was killed where it was to be: at its point, or, of one that never ends, when all was done."""
    if start.watched.held is not None:
        return True
    return at.name == EXIT and start.over is Over.COMPLETE


def evidence(start: Start, at: Point) -> dict[str, Any]:
    """What proves a crash: the call that was held, and who was killed meanwhile."""
    held, emptied = start.watched.held, start.watched.emptied
    return {
        "point": at.name,
        "signal": 9,
        "killed": list(emptied.killed) if emptied else [],
        "call": held.name if held else "",
        "path": (held.target or held.path) if held else "",
        "at": emptied.begun if emptied else 0.0,
    }
