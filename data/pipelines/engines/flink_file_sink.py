"""Flink's FileSink, exactly-once by checkpoints; a restart goes on from the newest checkpoint or savepoint."""

from flink_job import HERE, copy_orders

# Rows as text roll into a new file at a checkpoint only where the file is large enough.
copy_orders(
    f"""'connector' = 'filesystem', 'path' = 'file://{HERE}/output', 'format' = 'json',
    'sink.rolling-policy.file-size' = '1b'""",
    {},
)
