"""Run a scratch query of the same kind as a real one, so that its classes are loaded and its Python processes started.

It belongs to `--standby` and has no switch of its own. A standby that has not run it takes over in 4.1 s instead of 1.0
s.

The query goes the whole way, with a checkpoint, a recovery and a sink, but in the driver's scratch folder, so no run is
affected. It warms up a standby driver, and collects classes for an archive.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy
from labkit.spark.options import PARTITIONS, Job, default_input, default_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def warm_up(spark: "SparkSession", job: Job, scratch: Path) -> None:
    """Run one small query of this job to its end.

    A job that reads with Spark's own source, or acts outside of Spark, is replaced by the job `running`.
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
