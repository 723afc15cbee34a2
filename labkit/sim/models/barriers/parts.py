"""What the job consists of: sources, operators, the coordinator, checkpoints, and the table outside.

A channel is `bytes`, one byte an item: a record by its place in the input, a barrier by `BARRIER` plus the id of its
checkpoint, or `END`. What an operator or the outside holds is one number whose octal digit r says how often record r
is in it, so that a record that counts twice can be named. This module must not contain a rule of the protocol.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from labkit.sim.model import Durable, Volatile

BARRIER = 128
"""The item of a barrier is this plus its checkpoint's id, so that a channel without a barrier is ASCII."""

ENDED = 255
"""The last item of a channel, and in place of a barrier's id: no more comes, which counts as every later barrier."""

END = bytes((ENDED,))

DIGIT = 3
"""Bits of an octal digit."""


def once(record: int) -> int:
    """A record, once."""
    return 1 << DIGIT * record


def times(held: int, record: int) -> int:
    """How often a record is in something."""
    return held >> DIGIT * record & 7


def records_in(held: int) -> Iterator[int]:
    """The records in something, in order, each as often as it is in it."""
    for record in range(held.bit_length()):
        for _ in range(times(held, record)):
            yield record


def taking(item: int) -> str:
    """The action by which a task takes this item from a channel."""
    if item < BARRIER:
        return "process"
    return "take_end" if item == ENDED else "take_barrier"


def total(queue: bytes) -> int:
    """The records in a channel."""
    return sum(once(item) for item in queue if item < BARRIER)


class Source(NamedTuple):
    """A task that reads a log. `position` is the next offset to read, `epoch` the last barrier that it injected."""

    position: Volatile[int] = 0
    epoch: Volatile[int] = 0
    ended: Volatile[bool] = False


class Operator(NamedTuple):
    """A task with inputs: a count, or the sink.

    `at` is the newest barrier that came by each input, `done` the newest checkpoint for which the task copied its
    state; `state` are the records that it has counted or put out. `sealed` is the sink's state at its last copy:
    what came since is in the open transaction.
    """

    inputs: Volatile[tuple[bytes, ...]] = ()
    at: Volatile[bytes] = b""
    done: Volatile[int] = 0
    state: Volatile[int] = 0
    sealed: Volatile[int] = 0


MISSING = -1
"""In place of an offset or a state that a checkpoint does not have."""


class Checkpoint(NamedTuple):
    """One checkpoint: of every source the next offset, of every operator its state, and what was in flight.

    `taken` are the tasks that have copied their state, `acked` those whose copy is stored and acknowledged, as bits.
    `flight` has a string of records for every channel, and is empty where nothing in flight is saved.
    """

    id: int
    taken: int
    acked: int
    offsets: tuple[int, ...]
    states: tuple[int, ...]
    flight: tuple[bytes, ...] = ()


class Coordinator(NamedTuple):
    """The process that triggers checkpoints and stores the complete ones.

    `pause` are the steps before it may trigger again.
    """

    triggered: Durable[int] = 0
    completed: Durable[tuple[Checkpoint, ...]] = ()
    running: Volatile[bool] = False
    pending: Volatile[tuple[Checkpoint, ...]] = ()
    pause: Volatile[int] = 0


class Faults(NamedTuple):
    """What may still go wrong, and how often."""

    crashes: int
    expiries: int
    cancels: int


Prepared = tuple[tuple[int, int], ...]
"""The sink's sealed transactions outside, each with the id of its checkpoint and its rows."""


class State(NamedTuple):
    """The job, and the environment: the rows that outsiders see, sealed transactions, and what may still go wrong.

    The channels are the memory of the task that reads them, as in a real engine: they die with the job.
    """

    coordinator: Coordinator
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    visible: int
    prepared: Prepared
    faults: Faults


Fields = tuple[Coordinator, tuple[Source, ...], tuple[Operator, ...], int, Prepared, Faults]

as_state: Callable[[Fields], State] = partial(tuple.__new__, State)
"""A state from all its fields. It takes a third of the time of `State(...)`, and a search builds one for every step."""


def live(at: bytes) -> bytes:
    """The newest barriers of the inputs that have not ended."""
    return at.replace(END, b"")
