"""One call of the sink in progress in a process, which numbers the effects and source lines within the call."""

import threading
from collections import Counter
from dataclasses import dataclass, field

from labkit.crashtest.instrument.effects import Effect, Kind
from labkit.crashtest.instrument.lines import LineTracer
from labkit.crashtest.instrument.ticket import Ticket

TIMES = 2
"""The number of executions of one source line in a call that are recorded; of all later ones only the last is."""


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
    """The number of executions of each line, counted only if lines are recorded."""
    last: dict[tuple[str, int], Effect] = field(default_factory=dict)
    """For each line that was executed more than `TIMES` times, its latest execution."""
    step: int = 0
    tracer: LineTracer | None = None

    def line(self, place: tuple[str, int]) -> Effect:
        """Count a source line that is about to be executed, and return it as an effect; `place` is its file
        and number.
        """
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
        """Count an effect that is about to happen, and return it. `place` is the file and line that cause it.

        `late` says whether the call had already returned.
        """
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
