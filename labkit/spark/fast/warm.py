"""Run a small query like a real one, so that the JVM loads its classes and starts its Python processes early.

It warms up a standby driver, which then takes over in 1.0 s instead of 4.1 s, and the driver that makes a class-data
archive. It has no switch of its own. The query has a checkpoint, a recovery and a sink like a real one, but in the
driver's temporary directory, so it affects no run.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy
from labkit.spark.options import PARTITIONS, Job, default_input, default_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def warm_up(spark: "SparkSession", job: Job, scratch: Path) -> None:
    """Run one small query of this job to its end, so that the JVM has loaded its classes before the first real query.

    The files of the small query are in `scratch`. If `job` is `shop`, `kafka` or `socket`, the small query has the job
    `running` instead.
    """
    from labkit.spark.jobs import JOBS, keep_state
    from labkit.spark.queries import register
    from labkit.spark.start import launch, open_checkpoint

    source = JOBS[job].source
    if source is None or job is Job.SHOP:
        warm_up(spark, Job.RUNNING, scratch)
        return
    plan, folder, path = JOBS[job], scratch / f"warm-{job}", default_input(job)
    place = {"checkpoint": folder / "checkpoint", "location": folder / "files"}
    opened = open_checkpoint(
        place["checkpoint"],
        sink=Strategy.TWO_PHASE,
        order=Order.DECISION,
        store="files",
        location=place["location"],
        partitions=PARTITIONS,
    )
    opened.recover()
    register(spark, source)
    keep_state(spark, default_state(job))
    lines = spark.readStream.format(source.name()).options(path=str(path)).load()
    launch(plan.compute(lines, folder), opened, plan.output_mode).await_end()
