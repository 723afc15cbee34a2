"""The same consumer in transactions: what it sends and its offset become visible together, or not at all."""

import os

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

KAFKA, SOURCE = os.environ["KAFKA"], TopicPartition("orders", 0)

producer = KafkaProducer(bootstrap_servers=KAFKA, transactional_id="copy")
producer.init_transactions()  # ends what a dead predecessor has left open
consumer = KafkaConsumer(
    bootstrap_servers=KAFKA, group_id="copy", enable_auto_commit=False, auto_offset_reset="earliest"
)
consumer.assign([SOURCE])

end = consumer.end_offsets([SOURCE])[SOURCE]
while consumer.position(SOURCE) < end:
    records = consumer.poll(timeout_ms=500, max_records=3).get(SOURCE, [])
    if not records:
        continue
    producer.begin_transaction()
    for record in records:
        producer.send("orders-out", record.value, partition=0)
    progress = {SOURCE: OffsetAndMetadata(records[-1].offset + 1, "", -1)}
    producer.send_offsets_to_transaction(progress, "copy")
    producer.commit_transaction()
producer.close()
consumer.close()
