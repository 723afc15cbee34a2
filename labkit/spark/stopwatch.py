"""Measure the phases of a batch that a foreachBatch sink writes: collect, write, pre-commit, commit.

A sink appends one line per batch to the file `times.jsonl` in the checkpoint's directory `labkit`, if the function
`ask` has created that file.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "times.jsonl"


class Stopwatch:
    """Measures how many seconds a batch spends in each phase, such as write.

    The results go to the file `times.jsonl` in `log`, the lab's directory in the checkpoint.
    """

    def __init__(self, log: Path, batch: int) -> None:
        self._path, self._batch = log / NAME, batch
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the duration of a `with` block to the seconds of the phase `name`."""
        begun = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - begun

    def move(self, seconds: float, *, out_of: str, to: str) -> None:
        """Move `seconds`, which were measured as part of the phase `out_of`, to the phase `to`."""
        self.seconds[out_of] -= seconds
        self.seconds[to] += seconds

    def keep(self) -> None:
        """Append the times of this batch to the file `times.jsonl`, but only if `ask` has created the file."""
        if self._path.exists():
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"batch": self._batch, **self.seconds}) + "\n")


def ask(log: Path) -> None:
    """Request measurements: create the file `times.jsonl` in `log`, the lab's directory in a checkpoint.

    As long as this file exists, the query of the checkpoint appends the times of each batch to it.
    """
    log.mkdir(parents=True, exist_ok=True)
    (log / NAME).touch()


def read(log: Path) -> dict[int, dict[str, float]]:
    """Return the seconds of each phase of each batch, as {batch: {phase: seconds}}, from `times.jsonl`."""
    batches: dict[int, defaultdict[str, float]] = {}
    for line in (log / NAME).read_text(encoding="utf-8").splitlines():
        seconds = json.loads(line)
        of_batch = batches.setdefault(seconds.pop("batch"), defaultdict(float))
        for phase, value in seconds.items():
            of_batch[phase] += value
    return {batch: dict(seconds) for batch, seconds in sorted(batches.items())}
