"""The daemon that forks Spark's Python workers with the instruments in place, also for code without an adapter.

Spark starts it as `-m labkit.crashtest.instrument.daemon WORKER_MODULE` (spark.python.daemon.module). This module must
not change how PySpark's own daemon, which it calls, forks and ends workers.
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
