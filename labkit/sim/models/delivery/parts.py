"""What delivery consists of: processes in a chain, the hops between them, what came out, and what may go wrong.

What a crash keeps and drops is declared here and nowhere else. How the parts change is
`labkit.sim.models.delivery.model`; this module must not contain a rule.
"""

from typing import NamedTuple

from labkit.sim.model import Durable, Volatile, Word


class Stage(Word):
    """What a process is doing with the record that it has taken from its channel."""

    DOWN = "down"
    IDLE = "idle"
    """It has none. The source, which takes records from nobody, is always idle."""
    WORKING = "working"
    """It has worked on it in memory; nobody knows of it yet."""
    WAITING = "waiting"
    """A weak production was made: it waits until everything downstream is done."""
    STORED = "stored"
    """What came of it is durable or out, but its id is not noted: only where broken=note_late."""
    DONE = "done"
    """What came of it is durable or out, and its id is noted; its sender does not know."""


class Message(NamedTuple):
    """A record on one hop. `name` is its id there: what a receiver keeps to know it again."""

    record: int
    name: int


Ids = int
"""A set of ids, as bits."""


class Process(NamedTuple):
    """One process of the chain."""

    outbox: Durable[tuple[Message, ...]] = ()
    """What it must still bring to the next process, oldest first. Of the source, which reads a log: all records."""
    ids: Durable[Ids] = 0
    """The ids that it has noted in its store."""
    memory: Volatile[Ids] = 0
    """The ids that it has noted in memory."""
    stage: Volatile[Stage] = Stage.DOWN
    held: Volatile[Message | None] = None
    """What it works on."""
    output: Volatile[Message | None] = None
    """The weak production that it made of it."""


class Hop(NamedTuple):
    """The network between two processes: records forward, acknowledgements (ids) back.

    `known` are the ids that the living connection has delivered; empty where connections do not deduplicate.
    """

    forward: tuple[Message, ...] = ()
    back: tuple[int, ...] = ()
    ids: Ids = 0


class Output(NamedTuple):
    """A record that came out at the end of the chain, for everybody to see, and after how many crashes."""

    record: int
    crashes: int


class Faults(NamedTuple):
    """How often each thing may still go wrong."""

    drops: int
    duplicates: int
    delays: int
    reorders: int
    crashes: int


class State(NamedTuple):
    """Processes, and the environment: the network, what came out, and what may still go wrong.

    `productions` counts the productions, so that each can get a fresh id; it stays 0 where ids are derived.
    """

    processes: tuple[Process, ...]
    hops: tuple[Hop, ...]
    out: tuple[Output, ...]
    productions: int
    faults: Faults
