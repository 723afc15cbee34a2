"""Kafka: hands its rows to a producer that sends them when it has the time, and returns."""

import json
import os

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

SERVER = os.environ.get("SINK_KAFKA", "localhost:9092")
TOPIC = os.environ.get("SINK_TOPIC", "crashtest-orders")
PLACE = TopicPartition(TOPIC, 0)


PRODUCERS = []


def write_batch(df, batch_id):
    """A foreachBatch function."""
    if not PRODUCERS:
        PRODUCERS.append(KafkaProducer(bootstrap_servers=SERVER, linger_ms=2000))
    for row in df.collect():
        PRODUCERS[0].send(TOPIC, json.dumps(row.asDict()).encode(), partition=0)


def read():
    """All records."""
    consumer = KafkaConsumer(bootstrap_servers=SERVER, auto_offset_reset="earliest", enable_auto_commit=False)
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
