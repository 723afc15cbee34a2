"""Forks Python workers for Spark, after importing once what every one of them would import for itself.

Spark starts it as `-m labkit.spark.daemon WORKER_MODULE` (spark.python.daemon.module). It must not change what a
worker does: the rest is PySpark's own daemon.
"""

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["pyspark.worker"]:
        import pandas  # noqa: F401  # imported for its side effect: the forked workers have it already
        import pyarrow  # noqa: F401
        import pyspark.sql.streaming.stateful_processor_api_client  # noqa: F401

    from pyspark.daemon import manager

    manager()
