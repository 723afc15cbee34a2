"""One changing line for a run that a person waits for: its stage in plain words, the seconds, and how far it has come.

Drivers tell their events from threads of their own, and a notebook's output is changed from the cell's own thread, so
events are noted here and shown by the runner's heartbeat.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from labkit.host.processes.events import (
    AnyEvent,
    Begun,
    DriverStarts,
    Ended,
    ExecutorKilled,
    Killed,
    Parked,
    Recovered,
    SessionUp,
    Struck,
)
from labkit.runs.progress import Tell, silent
from labkit.view.front_end import Line, is_kernel, is_watched, line

STEPS = 5
"""Steps of one driver: it starts, Spark is up, the job is opened, it reaches its point or its end, and it is dead."""


@dataclass
class Watch:
    """What a run's events say, for `line`. `crashes` are planned in one run; with several `runs`, their ends count."""

    line: Line
    crashes: int
    runs: int = 1
    clock: Callable[[], float] = time.monotonic
    stage: str = "getting ready"
    done: int = 0
    _killed: int = 0
    _ended: int = 0
    _began: float = 0.0
    _shown: tuple[str, int] = ("", -1)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def of(self) -> int:
        """All there is to do."""
        return self.runs if self.runs > 1 else STEPS * (self.crashes + 1)

    def tell(self, event: AnyEvent) -> None:
        """Notes an event; called from any thread."""
        self._ended += isinstance(event, Ended)
        if self.runs > 1:
            self.done = self._ended
            self.stage = f"{self._ended} of {self.runs} runs have ended"
            return
        said = _stage(event, again=self._killed > 0)
        # The last driver is killed as well, when everything is done: that is no crash.
        if said is not None and not (isinstance(event, Killed) and self._killed == self.crashes):
            step, self.stage = said
            self.done = max(self.done, STEPS * self._killed + step)
        self._killed += isinstance(event, Killed)

    def beat(self) -> None:
        """Shows what has changed; called from the cell's own thread, several times a second."""
        now = (self.stage, int(self.clock() - self._began))
        if now != self._shown:
            self._shown = now
            self.line.show(f"{now[0]}, {now[1]} s", self.done, self.of)

    def end(self, how: str = "took") -> None:
        """Leaves one short line."""
        seconds = int(self.clock() - self._began)
        what = f"{self.runs} runs" if self.runs > 1 else "The run"
        self.line.end(f"{what} {how} {seconds} s.")


def _stage(event: AnyEvent, *, again: bool) -> tuple[int, str] | None:
    """How far the driver has come, and what to say; None for an event that changes neither."""
    said: tuple[int, str] | None = None
    match event:
        case DriverStarts():
            said = 0, "starting Spark again" if again else "starting Spark"
        case SessionUp():
            said = 1, "Spark is up"
        case Begun():
            said = 2, "reading the checkpoint" if again else "starting the job"
        case Recovered():
            said = 3, "the job runs again" if again else "the job runs"
        case Parked() | Struck():
            said = 4, "the moment is reached, now comes the kill"
        case ExecutorKilled():
            said = 4, "the executor is dead, the job goes on"
        case Ended():
            said = 4, "the job has ended, now a reader looks"
        case Killed():
            said = STEPS, "killed: every process is dead"
        case _:
            pass
    return said


@contextmanager
def watched(
    tell: Tell | None, elsewhere: Tell, *, crashes: int, runs: int = 1
) -> Iterator[tuple[Tell, Callable[[], None] | None]]:
    """Whom to tell, and the heartbeat: the `tell` that was asked for, else a changing line where a person looks.

    A notebook that a program runs is told nothing, so that its output is the same every time; a terminal hears
    `elsewhere`.
    """
    if tell is not None:
        yield tell, None
    elif is_watched():
        watch = Watch(line(), crashes, runs)
        watch.beat()
        try:
            yield watch.tell, watch.beat
        except BaseException:
            watch.end("stopped after")
            raise
        watch.end()
    else:
        yield (silent if is_kernel() else elsewhere), None
