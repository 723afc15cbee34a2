"""Flink's FileSink, exactly-once by checkpoints; a restart goes on from the last checkpoint."""

from flink_job import HERE, copy_orders

copy_orders(f"'connector' = 'filesystem', 'path' = 'file://{HERE}/output', 'format' = 'json'", {})
