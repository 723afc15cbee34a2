"""The paths of all files in the folder of a run."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunFolder:
    """The paths of all files and subfolders in the folder of one run (`path`)."""

    path: Path

    @property
    def config(self) -> Path:
        """The file with the run's options, and with the versions of labkit, PySpark and Python."""
        return self.path / "config.json"

    @property
    def checkpoint(self) -> Path:
        """The checkpoint directory of the run's Spark query."""
        return self.path / "checkpoint"

    def put_aside(self, crash: int) -> Path:
        """The folder to which the checkpoint is moved after crash number `crash` if the scenario deletes it."""
        return self.path / f"checkpoint-{crash}"

    @property
    def final(self) -> Path:
        """The JSON file with the last value of each key, written only if there are too many for the verdict file."""
        return self.path / "final.json"

    @property
    def evidence(self) -> Path:
        """The JSON file with the evidence of every crash, for example the ids of the killed processes."""
        return self.path / "evidence.json"

    @property
    def history(self) -> Path:
        """The JSON Lines file with all rows that readers could have seen, and the moments at which readers looked."""
        return self.path / "history.jsonl"

    @property
    def moments(self) -> Path:
        """The file with the times at which the rows became visible; runs of earlier versions of labkit lack it."""
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
        """The location of the store of this kind: a database file for `sqlite`, a folder for `files`.

        `postgres` and `kafka` keep their rows in a server. For `postgres` the path does not exist, and its text
        identifies the store in the server; for `kafka` it is a folder with notes, such as the topic's name.
        """
        return self.path / "store" / ("store.sqlite" if kind == "sqlite" else kind)

    @property
    def source(self) -> Path:
        """The folder with labkit's notes about the run's input topic in Kafka, such as the topic's name."""
        return self.path / "source"

    @property
    def outside(self) -> Path:
        """The folder with the price list that the job `shop` reads and the mails that it sends."""
        return self.path / "outside"

    def reached(self, driver: int) -> Path:
        """The file that a process of driver number `driver` writes at its failpoint, before it is killed."""
        return self.path / f"reached-{driver}.json"

    def driver_log(self, driver: int) -> Path:
        """The log file of driver number `driver`, with the output of its JVM and its Python workers."""
        return self.path / f"driver-{driver}.log"
