"""Import once the modules that every Python worker needs, then run PySpark's own daemon, which forks the workers.

Spark starts this program as `-m labkit.spark.fast.daemon WORKER_MODULE` (spark.python.daemon.module).
"""

import sys
from importlib import import_module

EVERY_WORKER = ("labkit.spark.source", "labkit.spark.adapters.data_source")
"""The modules that the lab's source and sink need in each Python process that Spark starts for them."""

STATEFUL = ("pandas", "pyarrow", "pyspark.sql.streaming.stateful_processor_api_client")
"""The modules that the workers of a stateful operator import, which takes half a second each time."""

if __name__ == "__main__":
    for name in EVERY_WORKER + (STATEFUL if sys.argv[1:2] == ["pyspark.worker"] else ()):
        import_module(name)

    from pyspark.daemon import manager

    manager()
