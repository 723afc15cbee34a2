"""Fork Python workers for Spark after importing, once, the modules that each of them would import.

Spark starts it as `-m labkit.spark.fast.daemon WORKER_MODULE` (spark.python.daemon.module). Apart from the
imports, it is PySpark's own daemon.
"""

import sys
from importlib import import_module

EVERY_WORKER = ("labkit.spark.source", "labkit.spark.adapters.data_source")
"""The modules that the lab's source and sink need in each process that plans, reads, writes or commits."""

STATEFUL = ("pandas", "pyarrow", "pyspark.sql.streaming.stateful_processor_api_client")
"""The modules that the workers of a stateful operator import, which takes half a second each time."""

if __name__ == "__main__":
    for name in EVERY_WORKER + (STATEFUL if sys.argv[1:2] == ["pyspark.worker"] else ()):
        import_module(name)

    from pyspark.daemon import manager

    manager()
