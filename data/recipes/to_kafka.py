"""Kafka: rows and marker are one transaction; the marker is the offset of a consumer group without members.

It demands readers with `isolation_level="read_committed"`, and one transactional id for each query.
"""

import json
import os
from functools import cache

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

SERVER = os.environ.get("KAFKA", "localhost:9092")
TOPIC = "orders"
PLACE = TopicPartition(TOPIC, 0)


@cache
def producer_of(group):
    producer = KafkaProducer(bootstrap_servers=SERVER, transactional_id=group)
    producer.init_transactions()  # ends a transaction that a dead job left open, and fences that job
    return producer


def write_batch(rows, query, batch):
    group = f"{TOPIC}-{query}"
    producer = producer_of(group)
    if next_batch(group) > batch:
        return
    producer.begin_transaction()
    try:
        sent = [producer.send(TOPIC, json.dumps(row).encode(), partition=0) for row in rows]
        producer.flush()
        for future in sent:
            future.get(timeout=10)
        producer.send_offsets_to_transaction({PLACE: OffsetAndMetadata(batch + 1, "", -1)}, group)
        producer.commit_transaction()
    except BaseException:
        producer_of.cache_clear()  # the next producer ends this transaction
        raise


def next_batch(group):
    consumer = KafkaConsumer(bootstrap_servers=SERVER, group_id=group, enable_auto_commit=False)
    try:
        return consumer.committed(PLACE) or 0
    finally:
        consumer.close()


def read():
    options = {"isolation_level": "read_committed", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(bootstrap_servers=SERVER, **options)
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
    admin = KafkaAdminClient(bootstrap_servers=SERVER)
    try:
        groups = [each["group_id"] for each in admin.list_groups() if each["group_id"].startswith(f"{TOPIC}-")]
        if groups:
            admin.delete_groups(groups)
        if TOPIC in admin.list_topics():
            admin.delete_records({PLACE: -1})
        else:
            admin.create_topics({TOPIC: {"num_partitions": 1}}, wait_for_metadata=True)
        producer_of(f"{TOPIC}-reset").close()  # a new broker needs a moment until it can begin transactions
    finally:
        admin.close()
