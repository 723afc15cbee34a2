"""Delivery's parameters and states: processes in a chain, the hops between them, their output, and what may go wrong.

The classes declare what a crash keeps and what it drops.
"""

from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.sim.model import Durable, Volatile, Word
from labkit.sim.parameters import Choice, Parameter, Switch, Values, Whole


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


VERSION = 1

PARAMETERS: dict[str, Parameter] = {
    "retry": Switch("Whether a sender repeats what was not acknowledged.", default=True),
    "dedup": Choice(
        "Where a receiver keeps the ids that it has seen: nowhere, in the connection, in its memory, in its store.",
        "durable",
        ("none", "connection", "volatile", "durable"),
    ),
    "productions": Choice(
        "When a process acknowledges: after one durable write of id and output (strong), or without it, when "
        "everything downstream is done (weak).",
        "strong",
        ("strong", "weak"),
    ),
    "ids": Choice(
        "What names a production: derived from the record, so the same when it is made again, or fresh each time.",
        "derived",
        ("derived", "fresh"),
    ),
    "processes": Whole("Processes in the chain, the source and the last one included.", 3, 2, 5),
    "records": Whole("Records, all of one key.", 2, 1, 5),
    "window": Whole("How many records a sender may have under way on a hop.", 1, 1, 3),
    "drops": Whole("How many messages may be lost.", 1, 0, 3),
    "duplicates": Whole("How many records may be there twice.", 1, 0, 3),
    "delays": Whole("How often a timeout may come although nothing was lost.", 0, 0, 3),
    "reorders": Whole("How often a record may overtake the one before it.", 0, 0, 3),
    "crashes": Whole("How many crashes there may be.", 1, 0, 3),
    "collects": Switch("Whether ids are forgotten once nobody can send them again.", default=False),
    "broken": Choice(
        "Which rule is left out: ack_early (acknowledged when it arrives), note_early (its id is noted when it "
        "arrives), note_late (its id is noted in a step of its own, after the output), highest_only (only the largest "
        "id is kept), collect_early (an id is forgotten while it may still be sent again).",
        "nothing",
        ("nothing", "ack_early", "note_early", "note_late", "highest_only", "collect_early"),
    ),
}

TABLES = ("volatile", "durable")
"""Where there is a table of seen ids."""


class Settings(NamedTuple):
    """The parameters, understood."""

    retry: bool
    dedup: str
    weak: bool
    fresh: bool
    processes: int
    records: int
    window: int
    faults: Faults
    collects: bool
    broken: str

    @property
    def last(self) -> int:
        """The process at the end of the chain, whose output everybody sees."""
        return self.processes - 1


def settings(values: Values) -> Settings:
    """The parameters, understood. Raises `InvalidInput` where two of them exclude each other."""
    broken, dedup = str(values["broken"]), str(values["dedup"])
    if not values["retry"] and values["productions"] == "weak":
        raise InvalidInput("retry=false: nobody acknowledges then, and productions=weak waits for it; use strong.")
    if not values["retry"] and broken == "ack_early":
        raise InvalidInput("retry=false: nobody acknowledges then, so broken=ack_early means nothing; set retry=true.")
    if broken not in ("nothing", "ack_early") and dedup not in TABLES:
        raise InvalidInput(f"broken={broken}: dedup={dedup} keeps no table of ids; set dedup=durable.")
    if values["collects"] and dedup not in TABLES:
        raise InvalidInput(f"collects=true: dedup={dedup} keeps no table of ids; set dedup=durable.")
    if broken == "highest_only" and values["ids"] == "fresh":
        raise InvalidInput("broken=highest_only: only derived ids are in the order of the records; set ids=derived.")
    return Settings(
        retry=bool(values["retry"]),
        dedup=dedup,
        weak=values["productions"] == "weak",
        fresh=values["ids"] == "fresh",
        processes=int(values["processes"]),
        records=int(values["records"]),
        window=int(values["window"]),
        faults=Faults(*(int(values[name]) for name in Faults._fields)),
        collects=bool(values["collects"]),
        broken=broken,
    )
