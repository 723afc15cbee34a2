"""Run a job with Spark's memory sink in two successive drivers, to show that it forgets all without a checkpoint."""

from pathlib import Path

from labkit.core.arguments import takes
from labkit.host.java import java_for_spark
from labkit.runs.driver_task import PATIENCE
from labkit.runs.memory import Life, live
from labkit.runs.prepare import fresh_folder
from labkit.runs.progress import Tell, in_place


@takes("lab.memory_sink()")
def memory_sink(folder: Path | None = None, *, tell: Tell = in_place, patience: float = PATIENCE) -> list[Life]:
    """Count three records into Spark's memory sink without a checkpoint, kill the driver, and do both again.

    Returns a `Life` for each of the two drivers: the rows that could be read while it ran, and what was on disk after
    its death. `folder` is the place for its files, and `patience` its time limit in seconds.
    """
    java_for_spark()
    place = fresh_folder("memory-sink") if folder is None else folder.absolute()
    place.mkdir(parents=True)
    return [live(place, number, tell, patience) for number in (1, 2)]
