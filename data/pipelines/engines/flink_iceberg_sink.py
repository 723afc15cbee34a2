"""Flink's Iceberg sink; a restart goes on from the newest checkpoint or savepoint."""

import os

from flink_job import HERE, copy_orders

# Flink looks for Hadoop's classes here before it starts the JVM.
os.environ["HADOOP_CLASSPATH"] = os.environ["JARS"]
copy_orders(
    f"""'connector' = 'iceberg', 'catalog-name' = 'orders', 'catalog-type' = 'hadoop',
    'warehouse' = 'file://{HERE}', 'catalog-database' = 'output', 'catalog-table' = 'orders'""",
    {"pipeline.jars": os.environ["FLINK_JARS"]},
)
