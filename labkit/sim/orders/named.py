"""Designs of writes that real systems use, each with its source; this module is data only.

A design has the order that the source states, without writes that no reader could notice: if the engine keeps its state
by version, as Spark does, the state is left out. `limit` states what a design cannot express, and what a system
requires that the simulator takes for granted.
"""

from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.sim.writes import Design, Write


class Built(NamedTuple):
    """A design that a real system uses, and the evidence for it."""

    design: Design
    who: str
    """The part of the system that makes these writes, in words."""
    source: str
    """A class, file, proposal or paper that documents the order."""
    limit: str = ""
    """How the system differs from the design, or what the verdict assumes; empty if no difference is known."""


def _built(text: str, who: str, source: str, limit: str = "") -> Built:
    return Built(Design.parse(text), who, source, limit)


_MARKED = "plan > visible+marker > decision; transaction; from decision, skips marked"
_NEW_CHECKPOINT = (
    "A new checkpoint folder starts again at batch 0: under the old name of the query, new rows pass for known ones "
    "and are lost."
)
_VALUES = "Keys and values must be the same again: an update such as n = n + 1 counts twice."
_ISOLATION = (
    "Only for readers with isolation.level=read_committed, which is not the default; over several partitions they may "
    "see part of a transaction first."
)
_PER_KEY = (
    "Trident notes the transaction id beside each value, not once for the batch: a crash between "
    "two keys shows part of "
    "a batch."
)

NAMED: dict[str, Built] = {
    "spark-append": _built(
        "plan > visible > decision; append; from decision",
        "Spark's foreachBatch that appends, Spark's Kafka sink",
        "offsets/N, then addBatch, then commits/N: MicroBatchExecution; docs: at-least-once",
    ),
    "spark-upsert": _built(
        "plan > visible > decision; upsert; from decision",
        "Spark's foreachBatch that merges by key",
        "DataStreamWriter.foreachBatch: the output for a batch id is the same again",
        _VALUES,
    ),
    "spark-marker": _built(
        _MARKED,
        "Spark's foreachBatch that writes the batch id in the same transaction",
        "DataStreamWriter.foreachBatch: the batch id can deduplicate",
        _NEW_CHECKPOINT,
    ),
    "spark-marker-after": _built(
        "plan > visible > marker > decision; append; from decision, skips marked",
        "Spark's foreachBatch that notes the batch id behind its rows",
        "data/sinks/wrong_marker_after.py",
    ),
    "spark-marker-before": _built(
        "plan > marker > visible > decision; append; from decision, skips marked",
        "Spark's foreachBatch that notes the batch id before its rows",
        "data/sinks/wrong_marker_before.py",
    ),
    "delta-txn": _built(
        _MARKED,
        "Delta Lake's txnAppId and txnVersion in foreachBatch",
        "docs.delta.io, idempotent table writes: SetTransaction in the commit",
        _NEW_CHECKPOINT,
    ),
    "spark-files": _built(
        "plan > staged > visible+marker > decision; transaction; from decision, skips marked",
        "Spark's file sink with its log _spark_metadata",
        "FileStreamSink.addBatch, ManifestFileCommitProtocol.commitJob",
        "Only for readers that follow _spark_metadata: a plain listing of the folder also finds files of a failed run.",
    ),
    "spark-real-time": _built(
        "visible > plan > decision; append; from decision",
        "Spark's real-time mode, which logs offsets at the end of a batch",
        "docs of Spark 4.1, real-time mode",
    ),
    "flink-two-phase": _built(
        "staged > state > decision > visible; transaction; from decision, finishes decided",
        "Flink's two-phase sink, and its file and Kafka sinks",
        "TwoPhaseCommitSinkFunction (1.x), CommitterOperator (2.x), CheckpointCoordinator.completePendingCheckpoint",
        "Prepared output must outlive every downtime: a Kafka transaction that expires after the decision is lost. "
        "A job restored from an older checkpoint commits later epochs a second time.",
    ),
    "flink-log": _built(
        "staged > state > decision > visible > marker; append; from decision, skips marked, finishes decided",
        "Flink's write-ahead-log sink with its CheckpointCommitter",
        "GenericWriteAheadSink.notifyCheckpointComplete (1.x)",
        "Flink sends what is left at the next completed checkpoint, not at the restart.",
    ),
    "kafka-transaction": _built(
        "visible+notice; transaction; from notice",
        "A Kafka producer that puts its consumer's offsets into the transaction of its output",
        "KIP-447: sendOffsetsToTransaction",
        _ISOLATION,
    ),
    "kafka-streams": _built(
        "state+visible+notice; transaction; from notice",
        "Kafka Streams with exactly_once_v2: changelog, output and offsets in one transaction",
        "KIP-447 (offsets in the transaction), KIP-892 (motivation: stores and their changelog)",
        _ISOLATION,
    ),
    "consumer-late": _built(
        "visible > notice; append; from notice",
        "A consumer that commits its offsets behind its output",
        "Kafka's documentation, message delivery semantics",
    ),
    "consumer-early": _built(
        "notice > visible; append; from notice",
        "A consumer that commits its offsets before its output",
        "Kafka's documentation, message delivery semantics",
    ),
    "offsets-in-store": _built(
        "visible+marker; transaction; from marker",
        "A consumer that keeps its offsets in the output's own database",
        "KafkaConsumer's javadoc, storing offsets outside Kafka",
    ),
    "outbox": _built(
        "state+staged > visible > clean; append; from state, finishes decided",
        "A transactional outbox with its relay",
        "C. Richardson, microservices.io: transactional outbox",
    ),
    "outbox-upsert": _built(
        "state+staged > visible > clean; upsert; from state, finishes decided",
        "A transactional outbox whose receivers replace by key",
        "C. Richardson, microservices.io: transactional outbox",
        _VALUES,
    ),
    "outbox-idempotent": _built(
        "state+staged > visible+marker > clean; transaction; from state, skips marked, finishes decided",
        "A transactional outbox whose receivers note the ids of processed messages in their own transaction",
        "C. Richardson, microservices.io: transactional outbox, idempotent consumer",
        "The receiver notes each message; here it notes each step.",
    ),
    "millwheel": _built(
        "state+staged > notice > visible+marker > clean; transaction; from state, skips marked, finishes decided",
        "MillWheel's strong productions: the sender is acknowledged, then receivers know the ids that they had",
        "Akidau and others, MillWheel, VLDB 2013",
        "The receiver notes the id of each record; here it notes each step. Old ids are forgotten "
        "once no sender retries.",
    ),
    "trident-transactional": _built(
        _MARKED,
        "Storm Trident's transactional state behind a transactional spout, whose batches are always the same",
        "Storm's documentation, Trident state and Trident spouts",
        _PER_KEY,
    ),
    "trident-mixed": _built(
        "visible+marker > decision; transaction; from decision, skips marked",
        "Storm Trident's transactional state behind an opaque spout, whose batches may change",
        "Storm's documentation, Trident state",
        _PER_KEY,
    ),
    "trident-opaque": _built(
        "state > visible > decision; upsert; from decision",
        "Storm Trident's opaque state: a batch with other tuples starts from the previous value and replaces its own",
        "Storm's documentation, Trident state",
        "Trident keeps previous value, value and transaction id as one value per key; here the "
        "previous value is a write "
        "of its own. A key that the repeated batch lacks keeps the update of the first try.",
    ),
    "database-log": _built(
        "staged > decision > visible > clean; upsert; from decision, finishes decided",
        "A database's write-ahead log: redo what is committed, drop the rest, then cut the log",
        "PostgreSQL's documentation, write-ahead logging: REDO",
        "The reader here looks at the data files. A database admits clients after the redo, so they "
        "see no value go back.",
    ),
}
"""The designs of real systems by a short name."""


def named(text: str) -> Design:
    """Return the design with this short name, or the design that this text describes.

    Raises `InvalidInput` with the nearest name.
    """
    if text in NAMED:
        return NAMED[text].design
    if not set(text) & set("> ;+") and text != Write.VISIBLE:
        raise InvalidInput(f"there is no design {text[:40]!r}; {nearest(text[:40], list(NAMED))}")
    return Design.parse(text)


def names_of(design: Design) -> list[str]:
    """Return the short names of the real systems that use exactly this design."""
    return [name for name, built in NAMED.items() if built.design == design]
