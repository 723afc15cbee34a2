"""The parameters and states of the simulator `delivery`: a chain of processes, the network between them, the output."""

from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.sim.model import Durable, Volatile, Word
from labkit.sim.parameters import Choice, Parameter, Switch, Values, Whole


class Stage(Word):
    """How far a process has got with the record that it handles now."""

    DOWN = "down"
    IDLE = "idle"
    """The process has no record. The source is always idle, because no process sends it records."""
    WORKING = "working"
    """The process has worked on the record in memory only; nothing has left the process."""
    WAITING = "waiting"
    """The process has sent on a weak production, without storing it, and waits until everything downstream is done."""
    STORED = "stored"
    """The output is durable or visible, but the record's id is not yet in the table (only with broken=note_late)."""
    DONE = "done"
    """The output is durable or visible and the id is in the table, but the sender has no acknowledgement yet."""


class Message(NamedTuple):
    """A record in flight between two processes; `name` is the id by which the receiver recognises duplicates."""

    record: int
    name: int


Ids = int
"""A set of record ids, as a number with one bit for each."""


class Process(NamedTuple):
    """The state of one process of the chain: records to send, ids of received records, and the current record."""

    outbox: Durable[tuple[Message, ...]] = ()
    """The records to send to the next process, oldest first. The source, which reads a log, starts with all records."""
    ids: Durable[Ids] = 0
    """The ids of received records in the process's durable table."""
    memory: Volatile[Ids] = 0
    """The ids of received records in the process's memory."""
    stage: Volatile[Stage] = Stage.DOWN
    held: Volatile[Message | None] = None
    """The record that the process works on now."""
    output: Volatile[Message | None] = None
    """The weak production that the process has made of this record, in memory only (see `delivery.model`)."""


class Hop(NamedTuple):
    """The network link between two neighbouring processes: records go forward, acknowledgements (ids) go back.

    `ids` has the ids of records that the open connection has delivered; it is 0 if connections do not deduplicate.
    """

    forward: tuple[Message, ...] = ()
    back: tuple[int, ...] = ()
    ids: Ids = 0


class Output(NamedTuple):
    """A record that left the last process, so that readers see it; `crashes` is the number of crashes before that."""

    record: int
    crashes: int


class Faults(NamedTuple):
    """How many more lost, duplicated, delayed and reordered messages, and crashes, a run may have."""

    drops: int
    duplicates: int
    delays: int
    reorders: int
    crashes: int


class State(NamedTuple):
    """The state of all processes, the network links, the output, and the faults that may still happen.

    `productions` counts the output records, to give each a fresh id; it stays 0 if ids are derived from the input.
    """

    processes: tuple[Process, ...]
    hops: tuple[Hop, ...]
    out: tuple[Output, ...]
    productions: int
    faults: Faults


PARAMETERS: dict[str, Parameter] = {
    "retry": Switch("Whether a sender repeats what was not acknowledged.", default=True),
    "dedup": Choice(
        "Where a receiver keeps the ids that it has seen: nowhere (none), in the connection, in its memory (volatile), "
        "or in its store (durable).",
        "durable",
        ("none", "connection", "volatile", "durable"),
    ),
    "productions": Choice(
        "When a process acknowledges: after one durable write of id and output (strong), or, without this write, when "
        "all processes after it are done (weak).",
        "strong",
        ("strong", "weak"),
    ),
    "ids": Choice(
        "The id of an output record: derived from its input record, so that a repeated output has the same id "
        "(derived), or new each time (fresh).",
        "derived",
        ("derived", "fresh"),
    ),
    "processes": Whole("Processes in the chain, including the source and the last one.", 3, 2, 5),
    "records": Whole("Records, all of one key.", 2, 1, 5),
    "window": Whole("How many records a sender may have under way on a hop.", 1, 1, 3),
    "drops": Whole("How many messages may be lost.", 1, 0, 3),
    "duplicates": Whole("How many records may be there twice.", 1, 0, 3),
    "delays": Whole("How often a timeout may come although nothing was lost.", 0, 0, 3),
    "reorders": Whole("How often a record may overtake the one before it.", 0, 0, 3),
    "crashes": Whole("How many crashes there may be.", 1, 0, 3),
    "collects": Switch("Whether ids are forgotten once nobody can send them again.", default=False),
    "broken": Choice(
        "Which rule is left out: ack_early (a record is acknowledged when it arrives), note_early (its id is noted "
        "when it arrives), note_late (its id is noted in a step of its own, after the output), highest_only (only the "
        "largest id is kept), collect_early (an id is forgotten while its record may still be sent again).",
        "nothing",
        ("nothing", "ack_early", "note_early", "note_late", "highest_only", "collect_early"),
    ),
}

TABLES = ("volatile", "durable")
"""The values of `dedup` with which a process keeps a table of the ids that it has seen."""


class Settings(NamedTuple):
    """The parameters of the simulator `delivery` as Python types; `faults` collects the limits on the faults."""

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
        """Return the number of the last process of the chain, whose output readers see."""
        return self.processes - 1


def settings(values: Values) -> Settings:
    """Convert parameter values to `Settings`. Raises `InvalidInput` if two of the values exclude each other."""
    broken, dedup = str(values["broken"]), str(values["dedup"])
    if not values["retry"] and values["productions"] == "weak":
        raise InvalidInput(
            "retry=false: with productions=weak a process waits for acknowledgements from downstream, which exist only "
            "with retries; set productions=strong."
        )
    if not values["retry"] and broken == "ack_early":
        raise InvalidInput(
            "retry=false: broken=ack_early sends acknowledgements early, but acknowledgements exist only with retries; "
            "set retry=true."
        )
    if broken not in ("nothing", "ack_early") and dedup not in TABLES:
        raise InvalidInput(
            f"broken={broken} leaves out a rule about the table of received ids, but dedup={dedup} keeps no such "
            "table; set dedup=durable."
        )
    if values["collects"] and dedup not in TABLES:
        raise InvalidInput(
            f"collects=true deletes old ids from the table of received ids, but dedup={dedup} keeps no such table; set "
            "dedup=durable."
        )
    if broken == "highest_only" and values["ids"] == "fresh":
        raise InvalidInput(
            "broken=highest_only compares ids by size, which works only if ids follow the order of the records; "
            "set ids=derived."
        )
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
