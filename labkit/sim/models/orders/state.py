"""The parameters and states of the simulator `orders`: design, input, stores, a process's memory, and visible rows."""

import re
from collections.abc import Sequence
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

ROWS_OF_A_STEP = 2
"""The largest number of input rows of a step. Two are enough for a crash between two rows."""


class World(Word):
    """Which rows a step gets if it runs again after a crash."""

    SAME = "same"
    """The same rows as before."""
    OTHER = "other"
    """Perhaps another number of rows than before; a plan (a record of the step's input) prevents that."""
    GONE = "gone"
    """The same rows, without those that the source deleted because a notice told it that they were processed."""


class Fault(Word):
    """The faults, other than a crash, that can happen to the process and its stores."""

    NONE = "none"
    LOST_ANSWER = "lost-answer"
    """Output becomes visible, but the store's answer is lost, so the process writes it again without a restart."""
    EXPIRY = "expiry"
    """The store aborts a prepared transaction after a timeout, whatever the process has decided."""
    LEASE = "lease"
    """The source only lends its rows: it refuses a notice that comes too late, and delivers the rows again."""
    LAG = "lag"
    """A step leaves out its plan, decision or notice, and the process continues; a later step writes its own."""


_SHORT = re.compile(r"[a-z]{1,12}([_-][a-z]{1,12}){0,9}")


def short(order: str) -> str:
    """Convert an order of writes to the form used in traces: `plan > visible+marker` becomes `plan-visible_marker`."""
    return order.replace("+", "_").replace(" > ", "-")


def _long(order: str) -> tuple[AtomicSet, ...]:
    return parse_order(order.replace("_", "+").replace("-", ">"))


def _order(text: str) -> str:
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
        "The writes of a step in order; - separates two, _ joins two that are atomic: plan-visible_marker-decision.",
        "plan-visible-decision",
        Checked(_order),
    ),
    "output": Choice(
        "How output becomes visible: append (row by row; a repeated row is there twice), upsert (row by row; a row "
        "replaces the row of its key), or transaction (all rows of a step at once).",
        "append",
        tuple(each.value for each in Output),
    ),
    "start": Choice(
        "The durable record from which a restart continues; beginning: it reads none and starts with the first row.",
        "decision",
        tuple(each.value for each in Start),
    ),
    "newest": Switch(
        "A restart takes the newest state, even if that state is of a later step than the record that it reads.",
        default=False,
    ),
    "skips": Switch("A step writes no output if the store's marker says that its output is written.", default=False),
    "leftover": Choice(
        "What a restart does with staged output: it drops all (dropped), or publishes the output of steps that will "
        "not run again (decided), or publishes all (all).",
        "dropped",
        tuple(_LEFTOVERS),
    ),
    "input": Choice(
        "Which rows a step gets when it runs again: the same, others (unless a plan fixes them), or the same without "
        "those that the source has deleted after a notice (gone).",
        "same",
        tuple(each.value for each in World),
    ),
    "rows": Whole("How many rows the input has.", 3, 1, 6),
    "crashes": Whole("How many crashes there may be.", 2, 0, 3),
    "undoes": Switch("A restart takes back visible rows of steps that run again.", default=False),
    "fault": Choice(
        "What else may happen: lost-answer (the answer to visible output is lost, so it is written again), expiry (the "
        "store aborts prepared output), lease (rows are delivered again if the notice comes late), or lag (a plan, "
        "decision or notice is left out, and the next step goes on).",
        "none",
        tuple(each.value for each in Fault),
    ),
    "faults": Whole("How many of these faults there may be.", 1, 0, 3),
}


class Settings(NamedTuple):
    """The parameters of the simulator `orders` as Python types, such as a `Design` instead of its text."""

    design: Design
    world: World
    rows: int
    crashes: int
    fault: Fault
    faults: int


def settings(values: Values) -> Settings:
    """Convert parameter values to `Settings`. Raises `InvalidInput` if the order or the recovery makes no sense."""
    recovery = Recovery(
        Start(str(values["start"])),
        bool(values["newest"]),
        bool(values["skips"]),
        _LEFTOVERS[str(values["leftover"])],
        bool(values["undoes"]),
    )
    order = str(values["order"])
    design = Design(_long(order), Output(str(values["output"])), recovery)
    if reason := nonsense(design):
        raise InvalidInput(f"order={order[:60]} makes no sense: {reason}; change the order or the recovery.")
    fault = Fault(str(values["fault"]))
    faults = 0 if fault is Fault.NONE else int(values["faults"])
    return Settings(design, World(str(values["input"])), int(values["rows"]), int(values["crashes"]), fault, faults)


def parameters_of(design: Design, world: World = World.SAME) -> dict[str, object]:
    """Return the values of the simulator's parameters, by name, that describe this design and this world.

    The world says which rows a step gets if a crash makes the job repeat the step.
    """
    recovery = design.recovery
    leftover = next(name for name, each in _LEFTOVERS.items() if each is recovery.leftover)
    return {
        "order": short(design.order),
        "output": design.output.value,
        "start": recovery.start.value,
        "newest": recovery.newest,
        "skips": recovery.skips,
        "leftover": leftover,
        "undoes": recovery.undoes,
        "input": world.value,
    }


class Note(NamedTuple):
    """A durable record that a step is done: the step's number, and the input offset after its last row (`end`)."""

    step: int
    end: int


NOTHING = Note(-1, 0)
"""The record of a process that has not finished any step."""


class Snapshot(NamedTuple):
    """The operator state after a step: the offset after its last row (`end`), and the running count (`total`)."""

    step: int
    end: int
    total: int


class Job(NamedTuple):
    """One step of the simulated job: its number, its rows, and the running count before the first of them (`base`).

    The rows are given by their offsets [start, end).
    """

    step: int
    start: int
    end: int
    base: int

    @property
    def note(self) -> Note:
        """Return the durable record with which the job says that this step is done."""
        return Note(self.step, self.end)

    @property
    def snapshot(self) -> Snapshot:
        """Return the state of the operator after this step: the running count that it must remember."""
        return Snapshot(self.step, self.end, self.base + self.end - self.start)


NO_JOB = Job(-1, 0, 0, 0)


class Place(Word):
    """The process's current activity."""

    DOWN = "down"
    UNDOING = "undoing"
    """The process was restarted and takes back rows of steps that will run again."""
    IDLE = "idle"
    """The process has not yet taken the input of its next step."""
    WORKING = "working"
    FINISHING = "finishing"
    """The process was restarted and finishes a step whose output is staged."""


class Process(NamedTuple):
    """The state of the process: the contents of its durable stores, then its memory."""

    plans: Durable[tuple[Job, ...]] = ()
    """The planned steps in the order of their numbers; a plan does not contain the running count."""
    states: Durable[tuple[Snapshot, ...]] = ()
    staged: Durable[Job] = NO_JOB
    marker: Durable[Note] = NOTHING
    decision: Durable[Note] = NOTHING
    notice: Durable[Note] = NOTHING
    place: Volatile[Place] = Place.DOWN
    job: Volatile[Job] = NO_JOB
    """The current step; while the process is idle, the next one, which has no rows yet."""
    at: Volatile[int] = 0
    """The index of the next atomic set that the current step must write."""
    shown: Volatile[int] = 0
    """The number of the step's rows that are visible already, if rows are made visible one by one."""
    is_marked: Volatile[bool] = False
    """Whether the store's marker already contained this step when the step took its input, so its output is skipped."""
    is_late: Volatile[bool] = False
    """Whether the source no longer lends the step's rows to this process, so that it refuses the notice."""


CRASHED, TAKEN_BACK = -1, -2
"""The offsets of a `Seen` that is no row: a crash, and the removal of the newest row that is still visible."""


class Seen(NamedTuple):
    """A row that became visible, or (with a negative offset) another event.

    `step` is the step that wrote the row. `life` is the number of starts of the process before the row became visible.
    The offset -1 stands for a crash, and -2 for taking back the newest row that is still visible.
    """

    offset: int
    value: int
    step: int
    life: int


class State(NamedTuple):
    """The state of the process, the rows that readers have seen, and how many crashes and faults may still happen.

    `life` counts the starts of the process.
    """

    process: Process
    seen: tuple[Seen, ...] = ()
    life: int = 1
    crashes: int = 0
    faults: int = 0


def kept(seen: Sequence[Seen]) -> list[int]:
    """Return the indices in `seen` of the rows that were not taken back."""
    rows: list[int] = []
    for index, each in enumerate(seen):
        if each.offset >= 0:
            rows.append(index)
        elif each.offset == TAKEN_BACK:
            rows.pop()
    return rows
