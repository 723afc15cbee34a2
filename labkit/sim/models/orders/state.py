"""The parameters of a design and its world, and the states: stores, the process's memory, and what a reader saw."""

import re
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.kinds import Checked, Unfit
from labkit.sim.model import Durable, Volatile, Word
from labkit.sim.parameters import Choice, Parameter, Switch, Values, Whole
from labkit.sim.writes import (
    AtomicSet,
    Design,
    Leftover,
    Output,
    Recovery,
    Start,
    Write,
    nonsense,
    order_text,
    parse_order,
)

VERSION = 1

ROWS_OF_A_STEP = 2
"""Rows of a step whose bounds nobody changes: enough for a crash between two rows."""


class World(Word):
    """What the input gives to a step that runs again."""

    SAME = "same"
    """The same rows as before."""
    OTHER = "other"
    """As many rows as there happen to be, unless a plan says which."""
    GONE = "gone"
    """The same rows, but those that the source was told of are gone."""


_SHORT = re.compile(r"[a-z]{1,12}([_-][a-z]{1,12}){0,9}")


def short(order: str) -> str:
    """The text of an order as it may stand in a trace."""
    return order.replace("+", "_").replace(" > ", "-")


def _long(order: str) -> tuple[AtomicSet, ...]:
    """The atomic sets of a text that `short` gave. Raises `InvalidInput`."""
    return parse_order(order.replace("_", "+").replace("-", ">"))


def _order(text: str) -> str:
    """An order with its sets in the order of `Write`. Raises `Unfit` for a text that is none."""
    remedy = f"write each of {', '.join(Write)} at most once, as in plan-visible_marker-decision."
    if not _SHORT.fullmatch(text):
        raise Unfit(remedy)
    try:
        return short(order_text(_long(text)))
    except InvalidInput:
        raise Unfit(remedy) from None


_LEFTOVERS = {"dropped": Leftover.DROPPED, "decided": Leftover.DECIDED, "all": Leftover.ALL}

PARAMETERS: dict[str, Parameter] = {
    "order": Parameter(
        "The writes of a step: - between two, _ where the next is atomic with the one before.",
        "plan-visible-decision",
        Checked(_order),
    ),
    "output": Choice(
        "How output comes: append (row by row, a repeated row is there twice), upsert (row by row, a row replaces that "
        "of its key), or transaction (all rows of a step at once).",
        "append",
        tuple(each.value for each in Output),
    ),
    "start": Choice(
        "The note that a restart goes on from; beginning: it reads none.",
        "decision",
        tuple(each.value for each in Start),
    ),
    "newest": Switch(
        "A restart takes the newest state, though it may stand behind a later step than the note.", default=False
    ),
    "skips": Switch("Output is left out for a step that the store's marker names.", default=False),
    "leftover": Choice(
        "What a restart does with staged output: dropped, decided (finished where the step will not run again), or all "
        "(finished whatever was noted).",
        "dropped",
        tuple(_LEFTOVERS),
    ),
    "input": Choice(
        "A step that runs again gets the same rows, other rows (unless a plan says which), or the same without those "
        "that the source was told of, which are gone.",
        "same",
        tuple(each.value for each in World),
    ),
    "rows": Whole("How many rows the input has.", 3, 1, 6),
    "crashes": Whole("How many crashes there may be.", 2, 0, 3),
}


class Settings(NamedTuple):
    """The parameters, understood."""

    design: Design
    world: World
    rows: int
    crashes: int


def settings(values: Values) -> Settings:
    """The parameters, understood. Raises `InvalidInput` for a design that makes no sense."""
    recovery = Recovery(
        Start(str(values["start"])), bool(values["newest"]), bool(values["skips"]), _LEFTOVERS[str(values["leftover"])]
    )
    order = str(values["order"])
    design = Design(_long(order), Output(str(values["output"])), recovery)
    if reason := nonsense(design):
        raise InvalidInput(f"order={order[:60]}: {reason}.")
    return Settings(design, World(str(values["input"])), int(values["rows"]), int(values["crashes"]))


def parameters_of(design: Design, world: World = World.SAME) -> dict[str, object]:
    """What is chosen of the simulator to run a design in a world."""
    recovery = design.recovery
    leftover = next(name for name, each in _LEFTOVERS.items() if each is recovery.leftover)
    return {
        "order": short(design.order),
        "output": design.output.value,
        "start": recovery.start.value,
        "newest": recovery.newest,
        "skips": recovery.skips,
        "leftover": leftover,
        "input": world.value,
    }


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
