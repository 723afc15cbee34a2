"""What a reader at read_committed finds in the topic orders-out, and how everything is emptied and filled anew."""

import json
import os
import shutil
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

SERVER = os.environ["KAFKA"]
ORDERS = Path(__file__).parent / "orders"
TOPICS = ("orders", "orders-out")


def read():
    """The rows up to the last stable offset."""
    consumer = KafkaConsumer(bootstrap_servers=SERVER, isolation_level="read_committed", auto_offset_reset="earliest")
    place, rows = TopicPartition("orders-out", 0), []
    consumer.assign([place])
    end = consumer.end_offsets([place])[place]
    while consumer.position(place) < end:
        rows += [json.loads(record.value) for record in consumer.poll(timeout_ms=200).get(place, [])]
    consumer.close()
    return rows


def reset():
    """Makes both topics anew, and puts the orders into the first."""
    for folder in ("inbox", "checkpoint"):
        shutil.rmtree(folder, ignore_errors=True)
    producer = KafkaProducer(bootstrap_servers=SERVER, transactional_id="copy")
    producer.init_transactions()  # ends what a killed run has left open
    producer.close()
    admin = KafkaAdminClient(bootstrap_servers=SERVER)
    if "copy" in {group["group_id"] for group in admin.list_groups()}:
        admin.delete_groups(["copy"])
    if there := set(admin.list_topics()) & set(TOPICS):
        admin.delete_topics(list(there))
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1) for name in TOPICS])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=SERVER)
    for path in sorted(ORDERS.iterdir()):
        for line in path.read_bytes().splitlines():
            producer.send("orders", line, partition=0)
    producer.close()
