"""Forks Python workers for Spark, after importing once what every one of them would import for itself.

Spark starts it as `-m labkit.spark.daemon WORKER_MODULE` (spark.python.daemon.module). It must not change what a
worker does: the rest is PySpark's own daemon.
"""

import sys
from importlib import import_module

ONCE = ("pandas", "pyarrow", "pyspark.sql.streaming.stateful_processor_api_client")
"""What the workers of a stateful operator import, half a second each."""

if __name__ == "__main__":
    if sys.argv[1:2] == ["pyspark.worker"]:
        for name in ONCE:
            import_module(name)

    from pyspark.daemon import manager

    manager()
