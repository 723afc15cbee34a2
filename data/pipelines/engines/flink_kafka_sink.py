"""Flink's Kafka sink, exactly-once by transactions; a restart goes on from the newest checkpoint or savepoint."""

import os

from flink_job import copy_orders

copy_orders(
    f"""'connector' = 'kafka', 'topic' = 'orders-out', 'properties.bootstrap.servers' = '{os.environ["KAFKA"]}',
    'format' = 'json', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'orders',
    'properties.transaction.timeout.ms' = '600000'""",
    {"pipeline.jars": os.environ["FLINK_JARS"]},
)
