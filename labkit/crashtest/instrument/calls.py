"""One call of the sink in progress in a process, with the numbers of its effects and source lines."""

import threading
from collections import Counter
from dataclasses import dataclass, field

from labkit.crashtest.instrument.effects import Effect, Kind
from labkit.crashtest.instrument.lines import LineTracer
from labkit.crashtest.instrument.ticket import Ticket

TIMES = 2
"""The number of executions of one line that are recorded in a call; of later ones only the last is recorded."""


@dataclass
class Call:
    """One call of the sink that is in progress in this process."""

    ticket: Ticket
    batch: int
    where: str
    count: int = 0
    lines: Counter[tuple[str, int]] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    passed: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each line was executed; counted only if lines are recorded."""
    last: dict[tuple[str, int], Effect] = field(default_factory=dict)
    """The latest execution of each line that was executed more than `TIMES` times."""
    step: int = 0
    tracer: LineTracer | None = None

    def line(self, place: tuple[str, int]) -> Effect:
        """Count a line that is about to be executed, and return it as an effect with its place in the call."""
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
        """Count an effect, from 1, and return it as it is before it happens. `place` is its file and line."""
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
