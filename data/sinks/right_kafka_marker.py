"""Kafka: rows and a marker in one transaction; the marker is the offset of a group that nobody is a member of."""

import json
import os

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

SERVER = os.environ.get("SINK_KAFKA", "localhost:9092")
TOPIC = os.environ.get("SINK_TOPIC", "crashtest-orders")
PLACE = TopicPartition(TOPIC, 0)


def last_batch(query):
    """The last batch of this query whose transaction has committed; -1 if none has."""
    consumer = KafkaConsumer(bootstrap_servers=SERVER, group_id=f"{TOPIC}-{query}", enable_auto_commit=False)
    try:
        return (consumer.committed(PLACE) or 0) - 1
    finally:
        consumer.close()


def write_batch(df, batch_id):
    """A foreachBatch function. To initialise the transactional id aborts what a dead driver left open."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    producer = KafkaProducer(bootstrap_servers=SERVER, transactional_id=f"{TOPIC}-{query}")
    try:
        producer.init_transactions()
        if last_batch(query) >= batch_id:
            return
        rows = df.collect()
        producer.begin_transaction()
        sent = [producer.send(TOPIC, json.dumps(row.asDict()).encode(), partition=0) for row in rows]
        producer.flush()
        for future in sent:
            future.get(timeout=10)
        offsets = {PLACE: OffsetAndMetadata(batch_id + 1, "", -1)}
        producer.send_offsets_to_transaction(offsets, f"{TOPIC}-{query}")
        producer.commit_transaction()
    finally:
        producer.close(timeout=5)


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
    finally:
        admin.close()
