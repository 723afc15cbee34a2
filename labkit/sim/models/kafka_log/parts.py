"""What the log consists of: partitions, the transaction coordinator, a job with checkpoints, readers, requests.

What a crash keeps and drops is declared here and nowhere else. This module must not contain a rule.
Left out: the producer id, since each transactional id has one; the groups of readers; the replicas of a partition.
"""

from typing import NamedTuple

from labkit.sim.model import Durable, Volatile, Word

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
