"""Kafka's log: its parameters and states: partitions, the transaction coordinator, a job, readers, requests.

The classes declare what a crash keeps and what it drops. The last stable offset is the position before the first record
of an open transaction (Kafka, `isolation.level`); a reader at read_committed gets nothing from there on, not even what
is committed. Left out: the producer id, since each transactional id has one; the groups of readers; the replicas of a
partition. A search builds a state for every step, so the functions at the end build it from all its fields at once
(`labkit.sim.model.from_fields`).
"""

from functools import lru_cache
from typing import NamedTuple

from labkit.sim.model import Durable, Volatile, Word, crash, from_fields
from labkit.sim.parameters import Choice, Parameter, Values, Whole
from labkit.sim.rules import one_less

COMMIT, ABORT = -1, -2
"""What a marker holds in place of a record."""

PLAIN = -1
"""In place of a transactional id: written without a transaction."""


class Slot(NamedTuple):
    """One position of a partition: a record of a transaction, a plain record, or a marker (COMMIT, ABORT)."""

    record: int
    name: int
    """The transactional id."""
    epoch: int
    batch: int = -1
    """The checkpoint that the writer meant to commit it with."""
    attempt: int = 0
    """The incarnation of the job that wrote it."""


Partition = tuple[Slot, ...]


class Stage(Word):
    """How far the last transaction of an id has come, under the names of Kafka's TransactionState."""

    EMPTY = "empty"
    ONGOING = "ongoing"
    PREPARE_COMMIT = "prepare_commit"
    """Decided and logged; the markers are still to be written."""
    PREPARE_ABORT = "prepare_abort"
    COMPLETE_COMMIT = "complete_commit"
    COMPLETE_ABORT = "complete_abort"


class Entry(NamedTuple):
    """What the coordinator's log says of one transactional id. `partitions` is a set, as bits.

    `age` counts the ticks since the first partition was added, which is when the clock of the timeout starts.
    """

    stage: Stage = Stage.EMPTY
    epoch: int = 0
    partitions: int = 0
    age: int = 0


class Coordinator(NamedTuple):
    """Kafka's transaction coordinator: its log by transactional id, and the markers that are known to be written."""

    log: Durable[tuple[Entry, ...]] = ()
    is_up: Volatile[bool] = False
    marked: Volatile[tuple[tuple[int, int], ...]] = ()
    """(id, partition); after a crash it writes these markers again."""


class Handle(NamedTuple):
    """The name by which any process can end a transaction: transactional id and epoch."""

    name: int
    epoch: int

    def __str__(self) -> str:
        return f"t{self.name}/e{self.epoch}"


class Checkpoint(NamedTuple):
    """A checkpoint: the next input record, and the transactions that are to be committed once it is complete."""

    number: int
    offset: int
    handles: tuple[Handle, ...]


class Due(NamedTuple):
    """A transaction whose commit is decided, and whether this incarnation has asked the coordinator for it."""

    handle: Handle
    is_sent: bool = False


class Phase(Word):
    """What the job is doing."""

    DOWN = "down"
    RECOVERING = "recovering"
    RUNNING = "running"
    ENDED = "ended"


class Job(NamedTuple):
    """The job that writes: source, sink with its producer, and the store of completed checkpoints."""

    checkpoints: Durable[tuple[Checkpoint, ...]] = ()
    """The completed ones: each is a decision."""
    incarnation: Durable[int] = 0
    phase: Volatile[Phase] = Phase.DOWN
    number: Volatile[int] = -1
    """The last checkpoint that was triggered or restored."""
    offset: Volatile[int] = 0
    """The next input record."""
    current: Volatile[Handle | None] = None
    """The producer's transaction, open or to be opened by the next record."""
    added: Volatile[int] = 0
    """The partitions that the producer has added to it, as bits; 0: nothing is written."""
    pending: Volatile[tuple[Handle, ...]] = ()
    """Pre-committed; no completed checkpoint names them."""
    triggered: Volatile[Checkpoint | None] = None
    """The checkpoint that is under way."""
    due: Volatile[tuple[Due, ...]] = ()
    to_fence: Volatile[tuple[int, ...]] = ()
    """The ids that recovery has still to initialise, which aborts what is open under them."""


NOBODY = Job()


class Reader(NamedTuple):
    """A reader of all partitions: the positions that it would start from, and those that it has come to."""

    stored: Durable[tuple[int, ...]] = ()
    is_up: Volatile[bool] = False
    positions: Volatile[tuple[int, ...]] = ()


class ReadRecord(NamedTuple):
    """A position of a partition whose record a reader has handed on. `early`: its transaction was undecided then."""

    position: int
    early: bool


Sight = tuple[tuple[ReadRecord, ...], ...]
"""What one reader has handed on, by partition."""


class Request(NamedTuple):
    """A request to commit on its way to the coordinator, from one incarnation of the job."""

    handle: Handle
    attempt: int


class Budget(NamedTuple):
    """How often each thing may still happen."""

    crashes: int = 0
    retries: int = 0
    lapses: int = 0
    rollbacks: int = 0
    zombies: int = 0
    others: int = 0
    ticks: int = 0


class State(NamedTuple):
    """Processes, then the environment: what readers have handed on, requests on their way, budgets, time.

    `since` are the ticks since the last checkpoint was triggered, or since the job is down.
    """

    job: Job
    zombie: Job
    coordinator: Coordinator
    partitions: tuple[Partition, ...]
    readers: tuple[Reader, ...]
    sights: tuple[Sight, ...]
    requests: tuple[Request, ...]
    budget: Budget
    since: int = 0
    failures: int = 0
    """How often the job has failed by itself."""


VERSION = 1

PARAMETERS: dict[str, Parameter] = {
    "records": Whole("Input records of the job; record i goes to partition i modulo the partitions.", 2, 1, 6),
    "partitions": Whole("Partitions of the log.", 2, 1, 3),
    "isolation": Choice(
        "Who reads: both readers (what is claimed is claimed of read_committed), or only one of them.",
        "both",
        ("both", "read_committed", "read_uncommitted"),
    ),
    "naming": Choice(
        "A transactional id for each checkpoint, or one that is used again by every transaction of the job.",
        "per_checkpoint",
        ("per_checkpoint", "one"),
    ),
    "protocol": Choice(
        "Transactions of version 1 (one epoch for all of a producer), or 2 (a new epoch with each; KIP-890).",
        "v1",
        ("v1", "v2"),
    ),
    "refused": Choice(
        "What the job does when a commit is refused: ignore (it logs the error and goes on), or raise (it fails).",
        "ignore",
        ("ignore", "raise"),
    ),
    "positions": Choice(
        "When a reader stores its position: in one step with what it hands on, or in a step of its own afterwards.",
        "with_rows",
        ("with_rows", "after_rows"),
    ),
    "crashes": Whole("How many crashes there may be, of job, coordinator and readers together.", 1, 0, 3),
    "retries": Whole("How often the job may send a commit again because no answer came.", 0, 0, 2),
    "lapses": Whole("How many checkpoints may expire while the job lives on.", 0, 0, 2),
    "rollbacks": Whole("How often an older checkpoint may be restored.", 0, 0, 1),
    "zombies": Whole("How many jobs may be thought dead and go on writing.", 0, 0, 1),
    "others": Whole("Records that somebody else writes without a transaction.", 0, 0, 2),
    "ticks": Whole("How many ticks of time may pass; 0: time stands still.", 0, 0, 20),
    "timeout": Whole("Ticks from the first write of a transaction until the coordinator may abort it.", 1, 1, 20),
    "interval": Whole("Ticks between the starts of two checkpoints; 0: at any time, and nothing is punctual.", 0, 0, 5),
    "checkpoint_timeout": Whole("Ticks that a checkpoint may take, if the interval is not 0.", 1, 0, 5),
    "downtime": Whole("Ticks that the job may be down, if the interval is not 0.", 1, 0, 5),
    "broken": Choice(
        "Which rule is broken: last_stable_offset (it passes open transactions), early_commit (commit at pre-commit), "
        "init_first (recovery initialises the ids that it should commit), forget_lingering (recovery leaves open "
        "transactions alone), no_fencing (epochs are not compared), forget_decision (the coordinator answers before "
        "its decision is logged).",
        "nothing",
        (
            "nothing",
            "last_stable_offset",
            "early_commit",
            "init_first",
            "forget_lingering",
            "no_fencing",
            "forget_decision",
        ),
    ),
}

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


class Settings(NamedTuple):
    """The parameters, understood."""

    records: int
    partitions: int
    readers: tuple[str, ...]
    reuses_id: bool
    bumps_epoch: bool
    fails_when_refused: bool
    stores_with_rows: bool
    budget: Budget
    timeout: int
    interval: int
    checkpoint_timeout: int
    downtime: int
    broken: str

    def partition_of(self, record: int) -> int:
        """The partition that an input record goes to."""
        return record % self.partitions


def settings(values: Values) -> Settings:
    """The parameters, understood."""
    isolation = str(values["isolation"])
    return Settings(
        records=int(values["records"]),
        partitions=int(values["partitions"]),
        readers=(READ_COMMITTED, READ_UNCOMMITTED) if isolation == "both" else (isolation,),
        reuses_id=values["naming"] == "one",
        bumps_epoch=values["protocol"] == "v2",
        fails_when_refused=values["refused"] == "raise",
        stores_with_rows=values["positions"] == "with_rows",
        budget=Budget(*(int(values[name]) for name in Budget._fields)),
        timeout=int(values["timeout"]),
        interval=int(values["interval"]),
        checkpoint_timeout=int(values["checkpoint_timeout"]),
        downtime=int(values["downtime"]),
        broken=str(values["broken"]),
    )


class Fate(Word):
    """What has become of a record."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@lru_cache(maxsize=100_000)
def fates(partition: Partition) -> tuple[Fate | None, ...]:
    """The fate of every position; None for a marker."""
    backwards: list[Fate | None] = []
    ends: dict[int, Fate] = {}
    for slot in reversed(partition):
        if slot.record < 0:
            ends[slot.name] = Fate.COMMITTED if slot.record == COMMIT else Fate.ABORTED
            backwards.append(None)
        else:
            backwards.append(Fate.COMMITTED if slot.name == PLAIN else ends.get(slot.name, Fate.OPEN))
    return tuple(reversed(backwards))


def last_stable_offset(partition: Partition) -> int:
    """The position before the first record of an open transaction; the end, if none is open."""
    fate_of = fates(partition)
    return fate_of.index(Fate.OPEN) if Fate.OPEN in fate_of else len(fate_of)


def open_epoch(partition: Partition, name: int) -> int:
    """The epoch of the open transaction of an id in this partition; -1: none is open."""
    for slot in reversed(partition):
        if slot.name == name:
            return slot.epoch if slot.record >= 0 else -1
    return -1


as_state = from_fields(State)


def with_job(state: State, job: Job, since: int) -> State:
    """The state with this job; `since` counts the ticks since its last checkpoint was triggered, or since it
    is down.
    """
    return as_state((job, *state[1:8], since, state.failures))


def with_coordinator(state: State, coordinator: Coordinator) -> State:
    """The state with this coordinator."""
    return as_state((*state[:2], coordinator, *state[3:]))


def with_reader(state: State, which: int, reader: Reader) -> State:
    """The state with this reader in the place of another."""
    at = state.readers
    readers = (*at[:which], reader, *at[which + 1 :])
    return as_state((*state[:4], readers, *state[5:]))


def with_poll(state: State, which: int, reader: Reader, sight: Sight) -> State:
    """The state with this reader, and with all that it has been handed so far."""
    at, sights = state.readers, state.sights
    readers = (*at[:which], reader, *at[which + 1 :])
    handed = (*sights[:which], sight, *sights[which + 1 :])
    return as_state((*state[:4], readers, handed, *state[6:]))


def appended(state: State, where: int, slot: Slot) -> State:
    """The state with one more slot at the end of a partition."""
    at = state.partitions
    partition: Partition = (*at[where], slot)
    partitions = (*at[:where], partition, *at[where + 1 :])
    return as_state((*state[:3], partitions, *state[4:]))


def spent(state: State, fault: str) -> State:
    """The state in which this fault may happen once less."""
    return state._replace(budget=one_less(state.budget, fault))


def failed(state: State) -> State:
    """The state after the job has failed by itself: its crash is none of those that were budgeted."""
    return with_job(state, crash(state.job), 0)._replace(failures=state.failures + 1)
