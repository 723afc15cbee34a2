"""The paths of all files in the folder of a run."""

from dataclasses import dataclass
from pathlib import Path


class _Inside:
    """An attribute whose value is the path of the file or folder `name` in the run's folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: "RunFolder", _owner: type["RunFolder"]) -> Path:
        return folder.path / self._name


@dataclass(frozen=True)
class RunFolder:
    """The paths of all files and subfolders in the folder of one run (`path`)."""

    path: Path

    config = _Inside("config.json")
    """The run's options, and the versions of labkit, PySpark and Python."""
    checkpoint = _Inside("checkpoint")
    """The checkpoint directory of the run's Spark query."""
    final = _Inside("final.json")
    """The last value of each key, written only if there are too many for the verdict file."""
    evidence = _Inside("evidence.json")
    """The evidence of every crash, for example the ids of the killed processes."""
    history = _Inside("history.jsonl")
    """All rows that readers could have seen, and the moments at which readers looked."""
    moments = _Inside("moments.jsonl")
    """The times at which the rows became visible; runs of earlier versions of labkit lack this file."""
    verdict = _Inside("verdict.json")
    """The judge's verdict."""
    report = _Inside("report.html")
    """The run's HTML report, which opens without a network."""
    diagram = _Inside("spacetime.svg")
    """The run's space-time diagram."""
    source = _Inside("source")
    """The folder with labkit's notes about the run's input topic in Kafka, such as the topic's name."""
    outside = _Inside("outside")
    """The folder with the price list that the job `shop` reads and the mails that it sends."""

    def put_aside(self, crash: int) -> Path:
        """The folder to which the checkpoint is moved after crash number `crash` if the scenario deletes it."""
        return self.path / f"checkpoint-{crash}"

    def store(self, kind: str) -> Path:
        """The path of the run's store of this kind: a database file for `sqlite`, a folder for `files`.

        `postgres` and `kafka` keep their rows in a server. For `postgres` the path does not exist, and its text
        identifies the store in the server; for `kafka` it is a folder with notes, such as the topic's name.
        """
        return self.path / "store" / ("store.sqlite" if kind == "sqlite" else kind)

    def reached(self, driver: int) -> Path:
        """The file that a process of driver number `driver` writes at its failpoint, before it is killed."""
        return self.path / f"reached-{driver}.json"

    def driver_log(self, driver: int) -> Path:
        """The log file of driver number `driver`, with the output of its JVM and its Python workers."""
        return self.path / f"driver-{driver}.log"
