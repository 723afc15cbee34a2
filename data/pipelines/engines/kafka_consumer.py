"""A plain consumer: reads orders, sends them on, waits for the broker, and commits its offset."""

import os

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

KAFKA, SOURCE = os.environ["KAFKA"], TopicPartition("orders", 0)

consumer = KafkaConsumer(
    bootstrap_servers=KAFKA, group_id="copy", enable_auto_commit=False, auto_offset_reset="earliest"
)
consumer.assign([SOURCE])
producer = KafkaProducer(bootstrap_servers=KAFKA, linger_ms=10_000)  # flush sends a batch as one request

end = consumer.end_offsets([SOURCE])[SOURCE]
while consumer.position(SOURCE) < end:
    for record in consumer.poll(timeout_ms=500, max_records=3).get(SOURCE, []):
        producer.send("orders-out", record.value, partition=0)
    producer.flush()
    consumer.commit()
producer.close()
consumer.close()
