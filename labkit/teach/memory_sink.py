"""Run a job into Spark's memory sink in two successive drivers, to show what a job without a checkpoint forgets."""

from pathlib import Path

from labkit.core.arguments import takes
from labkit.host.java import java_for_spark
from labkit.runs.conduct import PATIENCE
from labkit.runs.memory import Life, live
from labkit.runs.prepare import fresh_folder
from labkit.runs.progress import Tell, in_place


@takes("lab.memory_sink()")
def memory_sink(folder: Path | None = None, *, tell: Tell = in_place, patience: float = PATIENCE) -> list[Life]:
    """Count three records into Spark's memory sink without a checkpoint, kill the driver, and repeat this once.

    Return a `Life` for each of the two drivers: which rows could be read inside it, and what its death left on disk.
    """
    java_for_spark()
    place = fresh_folder("memory-sink") if folder is None else folder.absolute()
    place.mkdir(parents=True)
    return [live(place, number, tell, patience) for number in (1, 2)]
