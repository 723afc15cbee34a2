"""Show a notebook's user one changing line while a run goes on: its stage, the seconds, and a progress bar.

Drivers report events from threads of their own, but only the cell's own thread can change a notebook's output.
Therefore `tell` only stores an event, and `beat`, which the runner calls regularly, shows it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from labkit.host.processes import events
from labkit.runs.progress import Tell, silent
from labkit.view.front_end import Line, is_kernel, is_watched, line

STEPS = 5
"""The steps of one driver in the progress bar: process started, Spark up, job opened, failpoint or end, dead."""

STAGES: Mapping[type[events.AnyEvent], tuple[int, str, str]] = {
    events.DriverStarts: (0, "starting Spark", "starting Spark again"),
    events.SessionUp: (1, "Spark has started", ""),
    events.Begun: (2, "starting the job", "reading the checkpoint"),
    events.Recovered: (3, "the job is running", "the job is running again"),
    events.Parked: (4, "the job has reached the failpoint and is being killed", ""),
    events.Struck: (4, "the job has reached the failpoint and is being killed", ""),
    events.ExecutorKilled: (4, "the executor was killed, the job continues", ""),
    events.Ended: (4, "the job has ended, reading the results", ""),
    events.Killed: (STEPS, "killed: every process is dead", ""),
}
"""For each event that begins a new stage of a run: the number of steps that the driver has completed, and a phrase.

The last text is the phrase after a restart; it is empty if the phrase is the same.
"""


@dataclass
class Watch:
    """The line in a notebook that shows the progress of one run, or how many of several runs have ended."""

    line: Line
    crashes: int
    runs: int = 1
    clock: Callable[[], float] = time.monotonic
    stage: str = "preparing the run"
    done: int = 0
    _killed: int = 0
    _ended: int = 0
    _began: float = 0.0
    _shown: tuple[str, int] = ("", -1)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def of(self) -> int:
        """The value of `done` at which the progress bar is full."""
        return self.runs if self.runs > 1 else STEPS * (self.crashes + 1)

    def tell(self, event: events.AnyEvent) -> None:
        """Note an event of a run; the next `beat` shows it in the notebook's line. May be called from any thread."""
        self._ended += isinstance(event, events.Ended)
        if self.runs > 1:
            self.done = self._ended
            self.stage = f"{self._ended} of {self.runs} runs have ended"
            return
        stage = STAGES.get(type(event))
        # The last driver is killed as well after it has finished, which is not a crash.
        if stage is not None and not (isinstance(event, events.Killed) and self._killed == self.crashes):
            step, first, again = stage
            self.stage = again if again and self._killed else first
            self.done = max(self.done, STEPS * self._killed + step)
        self._killed += isinstance(event, events.Killed)

    def beat(self) -> None:
        """Update the line in the notebook if the stage or the number of seconds has changed.

        Call this several times a second, in the thread of the notebook's cell.
        """
        now = (self.stage, int(self.clock() - self._began))
        if now != self._shown:
            self._shown = now
            self.line.show(f"{now[0]}, {now[1]} s", self.done, self.of)

    def end(self, how: str = "took") -> None:
        """Replace the line by a final sentence such as `The run took 21 s.`; `how` is its verb (here `took`)."""
        seconds = int(self.clock() - self._began)
        what = f"{self.runs} runs" if self.runs > 1 else "The run"
        self.line.end(f"{what} {how} {seconds} s.")


@contextmanager
def watched(
    tell: Tell | None, elsewhere: Tell, *, crashes: int, runs: int = 1
) -> Iterator[tuple[Tell, Callable[[], None] | None]]:
    """Yield two functions that show a run's progress: one to call with each event, and one to call regularly.

    The first function is `tell` if the caller passes one. Otherwise it depends on the place: in a terminal it is
    `elsewhere`; in a notebook that a user is looking at, it changes one line of text; in a notebook that a program
    executes, it does nothing. The second function updates the seconds in the notebook's line; it is None if there is no
    such line.
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
