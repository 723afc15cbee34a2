"""Kafka, two-phase commit, log-then-commit: a call flushes a transaction and leaves it open; commits/N decides it.

A transaction that was flushed is finished by its id, producer id and epoch, which a file remembers as the vote.
kafka-python has no public call for that: the private names are those of 3.0. A transaction waits for ten minutes.
"""

import json
import os
import shutil
from pathlib import Path
from threading import Lock

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionState
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

SERVER = os.environ.get("SINK_KAFKA", "localhost:9092")
TOPIC = os.environ.get("SINK_TOPIC", "crashtest-orders")
VOTES = Path(os.environ.get("SINK_STORE", "sink-votes"))
PLACE = TopicPartition(TOPIC, 0)

finishing = Lock()
"""The engine calls its listener in a thread of its own, so it may come while the next call commits the same batch."""


def producer_of(name):
    """A producer with a transactional id of its own for each batch."""
    return KafkaProducer(bootstrap_servers=SERVER, transactional_id=name, transaction_timeout_ms=600_000)


def commit(name, vote):
    """Commits what another process has flushed; to do it again does no harm."""
    producer = producer_of(name)
    manager = producer._transaction_manager
    manager.set_producer_id_and_epoch(ProducerIdAndEpoch(vote["producer"], vote["epoch"]))
    manager._current_state, manager._transaction_started = TransactionState.IN_TRANSACTION, True
    try:
        producer.commit_transaction()
    finally:
        producer.close(timeout=5)


def abort(name):
    """Whoever initialises an id aborts what is open under it."""
    producer = producer_of(name)
    try:
        producer.init_transactions()
    finally:
        producer.close(timeout=5)


def finish(query, decided, *, rest):
    """Commits what was decided; `rest`: aborts what was not, since nobody can be about to decide it."""
    with finishing:
        for path in sorted(VOTES.glob(f"{query}-*.json")):
            if int(path.stem.rpartition("-")[2]) <= decided:
                commit(f"{TOPIC}-{path.stem}", json.loads(path.read_text()))
                path.unlink(missing_ok=True)
            elif rest:
                abort(f"{TOPIC}-{path.stem}")
                path.unlink(missing_ok=True)


class Decided(StreamingQueryListener):
    """Hears that the engine has finished a batch."""

    def onQueryStarted(self, event):
        """Nothing is decided yet."""

    def onQueryProgress(self, event):
        """commits/N is there."""
        finish(event.progress.id, event.progress.batchId, rest=False)

    def onQueryTerminated(self, event):
        """Nothing more is decided."""


listener = Decided()
listening = []


def write_batch(df, batch_id):
    """A foreachBatch function. That it is called for batch N says that commits/N-1 is there."""
    if not listening:
        # The batch comes with a session of its own, whose listeners do not hear of the query.
        listening.append(SparkSession.builder.getOrCreate().streams.addListener(listener))
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.collect()
    finish(query, batch_id - 1, rest=True)
    name = f"{query}-{batch_id:05}"
    producer = producer_of(f"{TOPIC}-{name}")
    producer.init_transactions()
    producer.begin_transaction()
    sent = [producer.send(TOPIC, json.dumps(row.asDict()).encode(), partition=0) for row in rows]
    producer.flush()
    for future in sent:
        future.get(timeout=10)
    made = producer._transaction_manager.producer_id_and_epoch
    VOTES.mkdir(parents=True, exist_ok=True)
    draft = VOTES / f"{name}.draft"
    draft.write_text(json.dumps({"producer": made.producer_id, "epoch": made.epoch}))
    draft.replace(VOTES / f"{name}.json")
    producer.close(timeout=5)


def recover(checkpoint):
    """What an earlier driver of this checkpoint left: called before the query starts."""
    folder = Path(checkpoint)
    if (folder / "metadata").exists():
        query = json.loads((folder / "metadata").read_text())["id"]
        commits = [int(path.name) for path in (folder / "commits").glob("[0-9]*")]
        finish(query, max(commits, default=-1), rest=True)


def read():
    """What a reader at read_committed gets, up to the last stable offset."""
    consumer = KafkaConsumer(
        bootstrap_servers=SERVER,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        if 0 not in (consumer.partitions_for_topic(TOPIC) or ()):
            return []
        consumer.assign([PLACE])
        end, rows = consumer.end_offsets([PLACE])[PLACE], []
        while consumer.position(PLACE) < end:
            rows += [json.loads(record.value) for record in consumer.poll(timeout_ms=200).get(PLACE, [])]
        return rows
    finally:
        consumer.close()


def reset():
    """Deletes all records up to the end of the topic."""
    admin = KafkaAdminClient(bootstrap_servers=SERVER)
    try:
        if TOPIC in admin.list_topics():
            admin.delete_records({PLACE: -1})
        shutil.rmtree(VOTES, ignore_errors=True)
    finally:
        admin.close()
