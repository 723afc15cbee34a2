"""One call of the sink that is under way in a process, and the numbers of its effects and lines."""

import threading
from collections import Counter
from dataclasses import dataclass, field

from labkit.crashtest.instrument.effects import Effect, Kind
from labkit.crashtest.instrument.lines import LineTracer
from labkit.crashtest.instrument.ticket import Ticket

TIMES = 2
"""How many executions of one line are recorded in a call, the first ones; of the others only the last one is."""


@dataclass
class Call:
    """One call of the sink that is under way in this process."""

    ticket: Ticket
    batch: int
    where: str
    count: int = 0
    lines: Counter[tuple[str, int]] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    passed: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each line was executed; only where lines are places."""
    last: dict[tuple[str, int], Effect] = field(default_factory=dict)
    """The latest execution of each line that was executed more often than recorded."""
    step: int = 0
    tracer: LineTracer | None = None

    def line(self, place: tuple[str, int]) -> Effect:
        """Counts a line that is about to be executed, and returns it as a place in the order of the call."""
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
        """Counts an effect, from 1, and returns it as it is before it happens. `place`: its file and line."""
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
