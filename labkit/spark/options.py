"""The jobs of the lab with their inputs, and the words for what may happen around them. No job is done here."""

from enum import StrEnum
from pathlib import Path


def shipped(name: str) -> Path:
    """A file of `data/`: inside an installed package, or beside the package in a checkout."""
    inside = Path(__file__).parents[1] / "data" / name
    return inside if inside.exists() else Path(__file__).parents[2] / "data" / name


HELLO_WORLD_HELLO = shipped("hello_world_hello.jsonl")
"""The three records that every crash in the lab starts with."""

SIX_WORDS = shipped("six_words.jsonl")
"""What the socket sends when nobody names another input."""

TWELVE_WORDS = shipped("twelve_words.jsonl")
"""Four words, three times: with Spark's hash each has one of four partitions to itself."""

THREE_ORDERS = shipped("three_orders.jsonl")
"""What the shop is asked for when nobody names another input: three items, each once."""

JABBERWOCKY = shipped("jabberwocky.txt")
"""A short real text: what the job `totals` counts when nobody names another one."""

PARTITIONS = 3
"""Shuffle partitions of the small job. With Spark's hash, `hello` and `world` share one of two and part at three."""

MOST_PARTITIONS = 16
"""While a point in a task is armed, all tasks of its batch wait for each other, each in a process of its own."""


class Job(StrEnum):
    """What the streaming query computes."""

    RUNNING = "running"
    """A stateful word count that emits one row (offset, word, running count) for every input record."""
    TOTALS = "totals"
    """Spark's own aggregation over any text: for every batch, the total of each word that occurs in it."""
    SOCKET = "socket"
    """One row (offset, word, 1) for every line of Spark's socket source, which cannot be replayed."""
    KAFKA = "kafka"
    """The same as `running`, on a Kafka topic of the run, which Spark's own source reads at read_committed."""
    SHOP = "shop"
    """One row (offset, item, price) for every order; it looks the price up outside, and sends a mail."""


class State(StrEnum):
    """Which of Spark's providers keeps the state of the count."""

    ROCKSDB = "rocksdb"
    """RocksDBStateStoreProvider: a database by task, its changes or snapshots in the checkpoint."""
    HDFS = "hdfs"
    """HDFSBackedStateStoreProvider, Spark's default: a map in the executor's heap by task, a delta file by batch."""


class CheckpointFate(StrEnum):
    """What happens to the checkpoint between a crash and the next driver."""

    KEPT = "kept"
    """Nothing, as it should be."""
    DELETED = "deleted"
    """It is put aside, as people do who want to start a query afresh: batch ids begin at 0 again."""


class Fault(StrEnum):
    """What else happens between a crash and the next driver, while nobody is there."""

    NOTHING = "nothing"
    KILL_SERVER = "kill-server"
    """SIGKILL to every process of the lab's own server that holds the store; then it is started again."""
    RESTART_SERVER = "restart-server"
    """The server is stopped and started, as for an upgrade."""
    EXPIRE = "expire"
    """Nobody comes back before the server has aborted what is open, because its time is over."""
    ADD_PARTITION = "add-partition"
    """The input topic gets a partition more; lines behind the crashed batch are written now, new words go there."""
    FALSIFY_GROUP = "falsify-group"
    """The consumer group is made to say that all is read; after every second crash, that nothing is."""
    EDIT_PRICES = "edit-prices"
    """Somebody edits the list of prices that the shop looks up: every item is dearer by 1."""


OF_THE_SOURCE = (Fault.ADD_PARTITION, Fault.FALSIFY_GROUP)
"""The faults between two drivers that strike the input of the job and not its store."""

ON_THIS_MACHINE = (Fault.NOTHING, Fault.EDIT_PRICES)
"""The faults that need no server."""


NOT_REPLAYABLE = (
    "a socket cannot be replayed: what was read from it and not yet written died with the driver, "
    "and Spark counts the lines of a new connection from 0 again and takes as many for done as it had planned before; "
    "so the run is at-most-once at best, whatever the sink"
)


def default_input(job: Job) -> Path:
    """What a job counts when nobody names an input."""
    own = {Job.TOTALS: JABBERWOCKY, Job.SOCKET: SIX_WORDS, Job.SHOP: THREE_ORDERS}
    return own.get(job, HELLO_WORLD_HELLO)


def default_state(job: Job) -> State:
    """Spark's own default where the job allows it; a stateful processor of ours needs RocksDB."""
    return State.ROCKSDB if job in STATEFUL else State.HDFS


STATEFUL = (Job.RUNNING, Job.KAFKA)
"""The jobs whose state is kept by a stateful processor of the lab (transformWithState)."""
