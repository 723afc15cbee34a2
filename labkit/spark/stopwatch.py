"""Measure how long each phase of a batch takes that a foreachBatch sink writes: collect, write, pre-commit, commit.

A sink measures only if somebody has created the file `times.jsonl` in the lab's folder of the checkpoint; it appends
one line per batch to that file. Measuring changes nothing else about the sink.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "times.jsonl"


class Stopwatch:
    """The seconds that one batch spends in each phase: collect, write, pre_commit, commit."""

    def __init__(self, log: Path, batch: int) -> None:
        self._path, self._batch = log / NAME, batch
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the duration of the block to the named phase."""
        begun = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - begun

    def move(self, seconds: float, *, out_of: str, to: str) -> None:
        """Move seconds from one phase, in which they were measured, to the one to which they belong."""
        self.seconds[out_of] -= seconds
        self.seconds[to] += seconds

    def keep(self) -> None:
        """Append the times of this batch to the file if `ask` has created it."""
        # Only measurements use it, so a normal run pays only for one look at the folder.
        if self._path.exists():
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"batch": self._batch, **self.seconds}) + "\n")


def ask(log: Path) -> None:
    """Create the file that makes sinks measure the batches of this checkpoint from now on."""
    log.mkdir(parents=True, exist_ok=True)
    (log / NAME).touch()


def read(log: Path) -> dict[int, dict[str, float]]:
    """Return the seconds of each batch by phase; several lines of a batch are summed up."""
    batches: dict[int, defaultdict[str, float]] = {}
    for line in (log / NAME).read_text(encoding="utf-8").splitlines():
        seconds = json.loads(line)
        of_batch = batches.setdefault(seconds.pop("batch"), defaultdict(float))
        for phase, value in seconds.items():
            of_batch[phase] += value
    return {batch: dict(seconds) for batch, seconds in sorted(batches.items())}
