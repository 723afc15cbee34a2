"""The names of the files in the folder of a run."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run: configuration, checkpoint, store, evidence, history, verdict, report, and drivers'
    logs.
    """

    path: Path

    @property
    def config(self) -> Path:
        """The file with the scenario and the versions of the programs that ran it."""
        return self.path / "config.json"

    @property
    def checkpoint(self) -> Path:
        """The query's checkpoint, with `offsets/` and `commits/` in it."""
        return self.path / "checkpoint"

    def put_aside(self, crash: int) -> Path:
        """The place to which the checkpoint was moved after the nth crash, so that people can still look into it."""
        return self.path / f"checkpoint-{crash}"

    @property
    def final(self) -> Path:
        """The last value of each key if there are too many for a verdict: one JSON object, sorted by key."""
        return self.path / "final.json"

    @property
    def evidence(self) -> Path:
        """The evidence of every crash: which processes were killed at which point, and which files existed."""
        return self.path / "evidence.json"

    @property
    def history(self) -> Path:
        """The rows that an outside reader could have seen and the reader's looks, in order, one JSON line each."""
        return self.path / "history.jsonl"

    @property
    def moments(self) -> Path:
        """The times at which rows of the history became visible, if known; runs of earlier versions lack the file."""
        return self.path / "moments.jsonl"

    @property
    def verdict(self) -> Path:
        """The judge's verdict as JSON."""
        return self.path / "verdict.json"

    @property
    def report(self) -> Path:
        """The HTML page for people, which opens without a network."""
        return self.path / "report.html"

    @property
    def diagram(self) -> Path:
        """The run as a space-time diagram."""
        return self.path / "spacetime.svg"

    def store(self, kind: str) -> Path:
        """The location of this run's store: a database file for sqlite, a folder for files; for other stores only
        its name.
        """
        return self.path / "store" / ("store.sqlite" if kind == "sqlite" else kind)

    @property
    def source(self) -> Path:
        """The location of the data about the topic that feeds this run, if its source is Kafka."""
        return self.path / "source"

    @property
    def outside(self) -> Path:
        """The folder with the prices that the job `shop` looks up and the mails that it sends, see
        `labkit.spark.outside`.
        """
        return self.path / "outside"

    def reached(self, driver: int) -> Path:
        """The evidence that the nth driver reached its failpoint."""
        return self.path / f"reached-{driver}.json"

    def driver_log(self, driver: int) -> Path:
        """The output of the nth driver, its JVM and its workers."""
        return self.path / f"driver-{driver}.log"
