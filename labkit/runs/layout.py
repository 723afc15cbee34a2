"""The paths of all files in the folder of a run."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, with the paths of its files: configuration, checkpoint, evidence, history and others."""

    path: Path

    @property
    def config(self) -> Path:
        """The file with the scenario, and with the versions of labkit, PySpark and Python that ran it."""
        return self.path / "config.json"

    @property
    def checkpoint(self) -> Path:
        """The folder with the query's checkpoint, with `offsets/` and `commits/` in it."""
        return self.path / "checkpoint"

    def put_aside(self, crash: int) -> Path:
        """The folder to which the checkpoint was moved after crash number `crash`, so that people can look into it."""
        return self.path / f"checkpoint-{crash}"

    @property
    def final(self) -> Path:
        """The file with the last value of each key as one JSON object, if there are too many for the verdict."""
        return self.path / "final.json"

    @property
    def evidence(self) -> Path:
        """The file with the evidence of every crash: which processes were killed where, and which files existed."""
        return self.path / "evidence.json"

    @property
    def history(self) -> Path:
        """The file of all rows that an outside reader could have seen, and of its readings, a JSON line each."""
        return self.path / "history.jsonl"

    @property
    def moments(self) -> Path:
        """The file with the times at which the rows of the history became visible; runs of earlier versions lack it."""
        return self.path / "moments.jsonl"

    @property
    def verdict(self) -> Path:
        """The file with the judge's verdict as JSON."""
        return self.path / "verdict.json"

    @property
    def report(self) -> Path:
        """The file with the run's HTML report, which opens without a network."""
        return self.path / "report.html"

    @property
    def diagram(self) -> Path:
        """The file with the run's space-time diagram."""
        return self.path / "spacetime.svg"

    def store(self, kind: str) -> Path:
        """The location of this run's store, by the store's name: a database file for sqlite, a folder for files.

        For a store in a server it is only a name.
        """
        return self.path / "store" / ("store.sqlite" if kind == "sqlite" else kind)

    @property
    def source(self) -> Path:
        """The folder with the name of the Kafka topic that feeds this run and the partition of each word, if any."""
        return self.path / "source"

    @property
    def outside(self) -> Path:
        """The folder with the prices that the job `shop` looks up and the mails that it sends; see `spark.outside`."""
        return self.path / "outside"

    def reached(self, driver: int) -> Path:
        """The file in which a process of the driver with this number recorded that it reached its failpoint."""
        return self.path / f"reached-{driver}.json"

    def driver_log(self, driver: int) -> Path:
        """The log of the driver with this number: its own output and that of its JVM and workers."""
        return self.path / f"driver-{driver}.log"
