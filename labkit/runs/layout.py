"""What a run folder holds, and under which names."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunFolder:
    """One run: configuration, checkpoint, store, evidence, history, verdict, report, and the drivers' logs."""

    path: Path

    @property
    def config(self) -> Path:
        """The scenario and the versions that ran it."""
        return self.path / "config.json"

    @property
    def checkpoint(self) -> Path:
        """The query's checkpoint, `offsets/` and `commits/` in it."""
        return self.path / "checkpoint"

    def put_aside(self, crash: int) -> Path:
        """The checkpoint that was deleted after the nth crash, for those who want to look into it."""
        return self.path / f"checkpoint-{crash}"

    @property
    def final(self) -> Path:
        """The last value of each key, where there are too many for a verdict: one JSON object, sorted by key."""
        return self.path / "final.json"

    @property
    def evidence(self) -> Path:
        """The evidence of every crash: which processes were killed where, and which files there were."""
        return self.path / "evidence.json"

    @property
    def history(self) -> Path:
        """What an outside reader could have seen, in order, one JSON line each."""
        return self.path / "history.jsonl"

    @property
    def moments(self) -> Path:
        """When the rows of the history became visible, as far as that is known; a run of an earlier version
        has none.
        """
        return self.path / "moments.jsonl"

    @property
    def verdict(self) -> Path:
        """The judge's verdict."""
        return self.path / "verdict.json"

    @property
    def report(self) -> Path:
        """The page for a person; opens offline."""
        return self.path / "report.html"

    @property
    def diagram(self) -> Path:
        """The run as a space-time diagram."""
        return self.path / "spacetime.svg"

    def store(self, kind: str) -> Path:
        """The location of this run's store: a database file for sqlite, a folder for files; elsewhere only its name."""
        return self.path / "store" / ("store.sqlite" if kind == "sqlite" else kind)

    @property
    def source(self) -> Path:
        """What is known of the topic that feeds this run, where its source is Kafka."""
        return self.path / "source"

    @property
    def outside(self) -> Path:
        """What the job `shop` looks up and sends, see `labkit.spark.outside`."""
        return self.path / "outside"

    def reached(self, driver: int) -> Path:
        """The evidence that the nth driver reached its failpoint."""
        return self.path / f"reached-{driver}.json"

    def driver_log(self, driver: int) -> Path:
        """Everything that the nth driver, its JVM and its workers printed."""
        return self.path / f"driver-{driver}.log"
