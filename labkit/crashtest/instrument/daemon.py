"""Forks Spark's Python workers with all wrappers of the test installed, also for code without an adapter.

Spark starts this daemon as `-m labkit.crashtest.instrument.daemon WORKER_MODULE` (spark.python.daemon.module). It calls
PySpark's own daemon, which forks and ends workers as usual.
"""

import sys

from labkit.crashtest.instrument import install

if __name__ == "__main__":
    import pyspark.sql.datasource  # noqa: F401  # what every worker of a test needs

    if sys.argv[1:2] != ["pyspark.worker"]:
        import labkit.crashtest.instrument.adapters  # noqa: F401  # the same, in the planning processes of a data source
    install.install()

    from pyspark.daemon import manager

    manager()
