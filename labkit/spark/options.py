"""The values of a run's options: jobs and their input files, state stores, and faults between crash and restart."""

from enum import StrEnum
from pathlib import Path


def shipped(name: str) -> Path:
    """Return the path of a file that labkit ships in its folder `data`."""
    inside = Path(__file__).parents[1] / "data" / name
    return inside if inside.exists() else Path(__file__).parents[2] / "data" / name


HELLO_WORLD_HELLO = shipped("hello_world_hello.jsonl")
"""The default input of the jobs `running` and `kafka`: three records, `hello`, `world`, `hello`."""

SIX_WORDS = shipped("six_words.jsonl")
"""The default input of the job `socket`."""

TWELVE_WORDS = shipped("twelve_words.jsonl")
"""A file with four words, three times each. Spark's hash puts each word into a different one of four partitions."""

THREE_ORDERS = shipped("three_orders.jsonl")
"""The default input of the job `shop`: three items, once each."""

JABBERWOCKY = shipped("jabberwocky.txt")
"""A short real text: the default input of the job `totals`."""

PARTITIONS = 3
"""The default number of shuffle partitions. With two, Spark's hash would put `hello` and `world` into the same one."""

MOST_PARTITIONS = 16
"""The largest number of shuffle partitions. A crash in a task needs all tasks at once, each in its own process."""


class Job(StrEnum):
    """The value of the option `--job`: which computation the streaming query does."""

    RUNNING = "running"
    """A stateful word count that emits one row (offset, word, running count) for every input record."""
    TOTALS = "totals"
    """Spark's own aggregation over any text: for every batch, the total of each word that occurs in it."""
    SOCKET = "socket"
    """One row (offset, word, 1) for every line of Spark's socket source, which cannot be replayed."""
    KAFKA = "kafka"
    """A word count like `running`, on a Kafka topic of the run, which Spark's own source reads at read_committed."""
    SHOP = "shop"
    """One row (offset, item, price) for every order; the job looks the price up in a file, and sends a mail."""


class State(StrEnum):
    """The value of the option `--state`: the state store provider of the query."""

    ROCKSDB = "rocksdb"
    """RocksDBStateStoreProvider: a database per task, with its changes or snapshots in the checkpoint."""
    HDFS = "hdfs"
    """HDFSBackedStateStoreProvider, Spark's default: per task a map in the executor's heap and delta files."""


class CheckpointFate(StrEnum):
    """Whether a run keeps its checkpoint after a crash, or deletes it (the option `--delete-checkpoint`)."""

    KEPT = "kept"
    """The checkpoint stays, as it must for exactly-once."""
    DELETED = "deleted"
    """The checkpoint is moved away, as by people who want a query to start afresh; batch ids begin at 0 again."""


class Fault(StrEnum):
    """The value of the option `--between`: a fault between crash and restart, such as a restart of the server."""

    NOTHING = "nothing"
    KILL_SERVER = "kill-server"
    """SIGKILL to every process of the lab's own server that holds the store, followed by a restart of the server."""
    RESTART_SERVER = "restart-server"
    """The server is stopped and started, as for an upgrade."""
    EXPIRE = "expire"
    """The next driver starts only after the server has aborted the open transactions because of their timeout."""
    ADD_PARTITION = "add-partition"
    """The input topic gets one more partition, for new words; the lines after the crashed batch come only then."""
    FALSIFY_GROUP = "falsify-group"
    """Somebody sets the consumer group's offsets to the end of the topic, or every second time to its beginning."""
    EDIT_PRICES = "edit-prices"
    """Somebody edits the shop's list of prices: every item costs 1 more."""


OF_THE_SOURCE = (Fault.ADD_PARTITION, Fault.FALSIFY_GROUP)
"""The faults that change the job's input rather than its store."""

ON_THIS_MACHINE = (Fault.NOTHING, Fault.EDIT_PRICES)
"""The faults that need no server, because they happen on this machine."""


NOT_REPLAYABLE = (
    "a socket cannot be replayed: lines that were read but not yet written are lost with the driver. Spark also "
    "counts the lines of a new connection from 0 again and skips as many as it had planned before. So the run "
    "is at-most-once at best, whatever the sink"
)


def default_input(job: Job) -> Path:
    """Return the path of the input file that a job reads by default."""
    own = {Job.TOTALS: JABBERWOCKY, Job.SOCKET: SIX_WORDS, Job.SHOP: THREE_ORDERS}
    return own.get(job, HELLO_WORLD_HELLO)


def default_state(job: Job) -> State:
    """Return the default state store provider of a job: RocksDB if the job uses transformWithState, otherwise HDFS."""
    return State.ROCKSDB if job in STATEFUL else State.HDFS


STATEFUL = (Job.RUNNING, Job.KAFKA)
"""The jobs whose state is kept by the lab's stateful processor (transformWithState)."""
