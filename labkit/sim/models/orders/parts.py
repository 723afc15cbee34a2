"""The states of a design: what the stores hold, what the process has in memory, what a reader saw. Nothing
here acts.
"""

from typing import NamedTuple

from labkit.sim.model import Durable, Volatile, Word


class Note(NamedTuple):
    """A note that a step is done: its number, and the input offset behind its last row."""

    step: int
    end: int


NOTHING = Note(-1, 0)
"""No step was noted."""


class Snapshot(NamedTuple):
    """The running count behind a step."""

    step: int
    end: int
    total: int


class Job(NamedTuple):
    """The rows of a step: the offsets [start, end), and the running count before the first of them."""

    step: int
    start: int
    end: int
    base: int

    @property
    def note(self) -> Note:
        """What is noted when the step is done."""
        return Note(self.step, self.end)

    @property
    def snapshot(self) -> Snapshot:
        """The state behind the step."""
        return Snapshot(self.step, self.end, self.base + self.end - self.start)


NO_JOB = Job(-1, 0, 0, 0)


class Place(Word):
    """What the process is doing."""

    DOWN = "down"
    IDLE = "idle"
    """The next step has not been taken."""
    WORKING = "working"
    FINISHING = "finishing"
    """The process was restarted and goes on with what is staged."""


class Process(NamedTuple):
    """What lies in stores, then the memory of the process."""

    plans: Durable[tuple[Job, ...]] = ()
    """The planned steps by number; of a plan the count is not kept."""
    states: Durable[tuple[Snapshot, ...]] = ()
    staged: Durable[Job] = NO_JOB
    marker: Durable[Note] = NOTHING
    decision: Durable[Note] = NOTHING
    notice: Durable[Note] = NOTHING
    place: Volatile[Place] = Place.DOWN
    job: Volatile[Job] = NO_JOB
    """The step in work; while idle the next one, which has no rows yet."""
    at: Volatile[int] = 0
    """The number of the atomic set that comes next."""
    shown: Volatile[int] = 0
    """Rows of the step that were made visible one by one."""
    is_marked: Volatile[bool] = False
    """Whether the store's marker named the step when the process looked, before it wrote anything."""


class Seen(NamedTuple):
    """A row that became visible; offset -1: the process crashed here."""

    offset: int
    value: int
    step: int
    life: int


class State(NamedTuple):
    """The process with its stores, then the environment: what readers saw, the process's lives, crashes to come."""

    process: Process
    seen: tuple[Seen, ...] = ()
    life: int = 1
    crashes: int = 0
