"""One call of the sink that is under way in a process, and the numbers that its effects and lines get.

This module must not write, wait or stop anything.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labkit.crashtest.instrument.effects import Effect, Kind
from labkit.crashtest.instrument.lines import LineTracer

if TYPE_CHECKING:
    from labkit.crashtest.instrument.recorder import Ticket

TIMES = 2
"""How often one line of a call is recorded from its first time on; of the others only the last time."""


@dataclass
class Call:
    """One call of the sink that is under way in this process."""

    ticket: "Ticket"
    batch: int
    where: str
    count: int = 0
    lines: Counter[tuple[str, int]] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    passed: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each line was executed; only where lines are places."""
    last: dict[tuple[str, int], Effect] = field(default_factory=dict)
    """Of the lines that were executed more often than they are recorded, the latest time."""
    step: int = 0
    tracer: LineTracer | None = None

    def line(self, place: tuple[str, int]) -> Effect:
        """The next line, as a place in the order of the call."""
        file, line = place
        with self.lock:
            self.step += 1
            self.passed[place] += 1
            return Effect(
                self.batch,
                self.where,
                self.count,
                Kind.LINE,
                "",
                line,
                self.passed[place],
                self.ticket.driver,
                file=file,
                step=self.step,
            )

    def next(self, kind: Kind, place: tuple[str, int], *, late: bool = False) -> Effect:
        """The next effect, numbered from 1, as it is before it has happened. `place`: file and line of the project."""
        file, line = place
        with self.lock:
            self.count += 1
            self.step = 0
            self.lines[place] += 1
            return Effect(
                self.batch,
                self.where,
                self.count,
                kind,
                "",
                line,
                self.lines[place],
                self.ticket.driver,
                file=file,
                late=late,
            )
