"""The parameters and states of the simulator `kafka_log`: partitions, transaction coordinator, job, readers, requests.

The last stable offset is the position of the first record of an open transaction (Kafka, `isolation.level`); a reader
at read_committed receives nothing from this position onwards, not even committed records. The model has no producer
ids, since each transactional id has exactly one, no consumer groups, and no replicas. The functions at the end build a
state from all its fields at once, which is fast (`labkit.sim.model.from_fields`).
"""

from functools import lru_cache
from typing import NamedTuple

from labkit.sim.model import Durable, Volatile, Word, crash, from_fields
from labkit.sim.parameters import Choice, Parameter, Values, Whole
from labkit.sim.rules import one_less

COMMIT, ABORT = -1, -2
"""The values of `Slot.record` for a commit marker and for an abort marker."""

PLAIN = -1
"""The value of `Slot.name` for a record without a transaction."""


class Slot(NamedTuple):
    """One position in a partition: a record, or a marker that commits or aborts a transaction."""

    record: int
    name: int
    """The transactional id, or `PLAIN`."""
    epoch: int
    batch: int = -1
    """The checkpoint with which the writer intends to commit the record."""
    attempt: int = 0
    """The incarnation of the job that wrote the record."""


Partition = tuple[Slot, ...]


class Stage(Word):
    """The stage of a transactional id's last transaction, with the names of Kafka's TransactionState."""

    EMPTY = "empty"
    ONGOING = "ongoing"
    PREPARE_COMMIT = "prepare_commit"
    """The commit is decided and logged, but some markers are not yet written."""
    PREPARE_ABORT = "prepare_abort"
    COMPLETE_COMMIT = "complete_commit"
    COMPLETE_ABORT = "complete_abort"


class Entry(NamedTuple):
    """The coordinator's last log entry for one transactional id. `partitions` is a set, one bit for each partition.

    `age` is the number of ticks since the first partition was added, which started the timeout.
    """

    stage: Stage = Stage.EMPTY
    epoch: int = 0
    partitions: int = 0
    age: int = 0


class Coordinator(NamedTuple):
    """The state of Kafka's transaction coordinator: the last log entry for each id, and which markers are written."""

    log: Durable[tuple[Entry, ...]] = ()
    is_up: Volatile[bool] = False
    marked: Volatile[tuple[tuple[int, int], ...]] = ()
    """The markers that the coordinator knows to be written, as (id, partition); after a crash it writes them again."""


class Handle(NamedTuple):
    """A transactional id and its epoch; any process that knows both can end the transaction."""

    name: int
    epoch: int

    def __str__(self) -> str:
        return f"t{self.name}/e{self.epoch}"


class Checkpoint(NamedTuple):
    """A checkpoint of the job: the offset of the next input record, and the transactions that it commits."""

    number: int
    offset: int
    handles: tuple[Handle, ...]


class Due(NamedTuple):
    """A transaction that the job must commit, and whether the job has requested the commit since its last restart."""

    handle: Handle
    is_sent: bool = False


class Phase(Word):
    """Whether the writing job is down, recovering, running or ended."""

    DOWN = "down"
    RECOVERING = "recovering"
    RUNNING = "running"
    ENDED = "ended"


class Job(NamedTuple):
    """The state of the writing job: its source, its sink with a producer, and the store of completed checkpoints."""

    checkpoints: Durable[tuple[Checkpoint, ...]] = ()
    """The completed checkpoints. A completed checkpoint is the decision to commit its transactions."""
    incarnation: Durable[int] = 0
    phase: Volatile[Phase] = Phase.DOWN
    number: Volatile[int] = -1
    """The number of the last checkpoint that was triggered or restored."""
    offset: Volatile[int] = 0
    """The offset of the next input record."""
    current: Volatile[Handle | None] = None
    """The producer's transaction, already open or to be opened by the next record."""
    added: Volatile[int] = 0
    """The partitions that the producer has added to this transaction, one bit for each; 0 if nothing is written."""
    pending: Volatile[tuple[Handle, ...]] = ()
    """The pre-committed transactions that are in no completed checkpoint."""
    triggered: Volatile[Checkpoint | None] = None
    """The checkpoint that was triggered and is not complete."""
    due: Volatile[tuple[Due, ...]] = ()
    """The transactions whose commit is decided and not yet confirmed."""
    to_fence: Volatile[tuple[int, ...]] = ()
    """The transactional ids that recovery must still initialise, which aborts their open transactions."""


NOBODY = Job()


class Reader(NamedTuple):
    """The state of a reader of all partitions: the positions stored for a restart, and the current positions."""

    stored: Durable[tuple[int, ...]] = ()
    is_up: Volatile[bool] = False
    positions: Volatile[tuple[int, ...]] = ()


class ReadRecord(NamedTuple):
    """A record that a reader has received: its position, and whether its transaction was still open then (`early`)."""

    position: int
    early: bool


Sight = tuple[tuple[ReadRecord, ...], ...]
"""The records that one reader has received, by partition."""


class Request(NamedTuple):
    """A request to commit that one incarnation of the job has sent and that has not yet reached the coordinator."""

    handle: Handle
    attempt: int


class Budget(NamedTuple):
    """How many more crashes, and other events of each limited kind, may happen in a run."""

    crashes: int = 0
    retries: int = 0
    lapses: int = 0
    rollbacks: int = 0
    zombies: int = 0
    others: int = 0
    ticks: int = 0


class State(NamedTuple):
    """The state of all processes, partitions and requests in flight, and the events that may still happen.

    `sights` has the records that each reader has received. `since` is the number of ticks since the latest of these
    events: a checkpoint was triggered, the job went down, or it was restarted.
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
    """The number of times that the job has failed by itself, without a crash from the budget."""


PARAMETERS: dict[str, Parameter] = {
    "records": Whole("Input records of the job; record i goes to partition i modulo the partitions.", 2, 1, 6),
    "partitions": Whole("Partitions of the log.", 2, 1, 3),
    "isolation": Choice(
        "The isolation levels of the readers: both (then the properties are about read_committed), or only one.",
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
    "lapses": Whole("How many checkpoints may expire while the job continues.", 0, 0, 2),
    "rollbacks": Whole("How often an older checkpoint may be restored.", 0, 0, 1),
    "zombies": Whole("How many jobs may be replaced although they are alive, and continue to write.", 0, 0, 1),
    "others": Whole("Records that somebody else writes without a transaction.", 0, 0, 2),
    "ticks": Whole("How many ticks of time may pass; 0: time stands still.", 0, 0, 20),
    "timeout": Whole("Ticks from the first write of a transaction until the coordinator may abort it.", 1, 1, 20),
    "interval": Whole(
        "Ticks between the starts of two checkpoints; 0: a checkpoint may start, and any step may happen, at any time.",
        0,
        0,
        5,
    ),
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
    """The parameters of the simulator `kafka_log` as Python types; `budget` collects the limits on faults."""

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
        """Return the partition of an input record."""
        return record % self.partitions


def settings(values: Values) -> Settings:
    """Convert parameter values to `Settings`."""
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
    """Whether a record's transaction is open, committed or aborted."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@lru_cache(maxsize=100_000)
def fates(partition: Partition) -> tuple[Fate | None, ...]:
    """Return for each position of a partition whether its record is open, committed or aborted; None for a marker."""
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
    """Return the position of the first record of an open transaction; the end of the partition if none is open."""
    fate_of = fates(partition)
    return fate_of.index(Fate.OPEN) if Fate.OPEN in fate_of else len(fate_of)


def open_epoch(partition: Partition, name: int) -> int:
    """Return the epoch of a transactional id's open transaction in this partition, or -1 if none is open."""
    for slot in reversed(partition):
        if slot.name == name:
            return slot.epoch if slot.record >= 0 else -1
    return -1


as_state = from_fields(State)


def with_job(state: State, job: Job, since: int) -> State:
    """Return the state with its job replaced by `job`.

    `since` is the number of ticks since the job last triggered a checkpoint, went down, or was restarted.
    """
    return as_state((job, *state[1:8], since, state.failures))


def with_coordinator(state: State, coordinator: Coordinator) -> State:
    """Return the state with the coordinator replaced by `coordinator`."""
    return as_state((*state[:2], coordinator, *state[3:]))


def with_reader(state: State, which: int, reader: Reader) -> State:
    """Return the state with reader number `which` replaced by `reader`."""
    at = state.readers
    readers = (*at[:which], reader, *at[which + 1 :])
    return as_state((*state[:4], readers, *state[5:]))


def with_poll(state: State, which: int, reader: Reader, sight: Sight) -> State:
    """Return the state after reader number `which` has polled; `sight` has all records that it has received so far."""
    at, sights = state.readers, state.sights
    readers = (*at[:which], reader, *at[which + 1 :])
    handed = (*sights[:which], sight, *sights[which + 1 :])
    return as_state((*state[:4], readers, handed, *state[6:]))


def appended(state: State, where: int, slot: Slot) -> State:
    """Return the state after a record or a marker (`slot`) was appended to partition number `where`."""
    at = state.partitions
    partition: Partition = (*at[where], slot)
    partitions = (*at[:where], partition, *at[where + 1 :])
    return as_state((*state[:3], partitions, *state[4:]))


def spent(state: State, fault: str) -> State:
    """Return the state after one of the remaining events of the kind `fault` has been used up."""
    return state._replace(budget=one_less(state.budget, fault))


def failed(state: State) -> State:
    """Return the state after the job has failed by itself, which does not count as one of the allowed crashes."""
    return with_job(state, crash(state.job), 0)._replace(failures=state.failures + 1)
