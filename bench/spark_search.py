"""A search in Spark's tasks compared with one core: the processor time of a state, and the memory of all processes.

Both stop at a given number of states of one model. A step is a generated state; a search that stops early reaches fewer
unique states per step, so compare the costs of a step. Processor time is that of all processes, since the clock would
also count other jobs.
"""

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from typing import Any, NamedTuple

import psutil

from bench.rows import Rows, median, ratio
from labkit.search import without_collector
from labkit.search.on_spark import explore_on_spark
from labkit.sim.explore import Exploration, explore
from labkit.sim.trace import make

GIVEN: dict[str, object] = {"participants": 5, "crashes": 2}
"""The parameters of the model `two_phase_commit`, which then has tens of millions of states."""
STATES = 1_000_000
ALONE = 1_000_000
"""The number of states after which the search on one core stops in any case, because it has all of them in memory."""
EVERY = 0.5
"""The seconds between two observations of the processes."""


class Spent(NamedTuple):
    """The result of one search, with seconds, processor seconds, and megabytes at the peak."""

    found: Exploration
    seconds: float
    processor: float
    megabytes: float

    @property
    def a_state(self) -> float:
        """Microseconds of processor time for each unique state."""
        return self.processor / self.found.unique_states * 1e6

    @property
    def a_step(self) -> float:
        """Microseconds of processor time for each generated state."""
        return self.processor / self.found.generated_states * 1e6


class Watch:
    """Observes the processor time and memory of this process and its descendants since it was created."""

    def __init__(self) -> None:
        self._me = psutil.Process()
        self._by_process: dict[psutil.Process, float] = {}
        self.bytes = 0
        self.look()
        self._before = sum(self._by_process.values())

    def look(self) -> None:
        """Record each process's processor time so far, because a process may end, and the largest memory of all."""
        used = 0
        for process in (self._me, *self._me.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                self._by_process[process] = sum(process.cpu_times()[:2])
                used += process.memory_full_info().pss
        self.bytes = max(self.bytes, used)

    @property
    def processor(self) -> float:
        """The processor seconds of all processes together, as far as observed."""
        return sum(self._by_process.values()) - self._before


def measure(rounds: int, states: int = STATES) -> Rows:
    """Return one row: a search of `states` states on two cores of Spark, and a search on one core without Spark."""
    model = make("two_phase_commit", GIVEN)
    on_spark, alone = [], []
    for _ in range(rounds):
        with watched() as watch, without_collector():
            begun = time.perf_counter()
            result = explore_on_spark(model, "local[2]", max_states=states)
        on_spark.append(_spent(result, begun, watch))
        with watched() as watch, without_collector():
            begun = time.perf_counter()
            result = explore(model, max_states=min(states, ALONE))
        alone.append(_spent(result, begun, watch))
    return [row(on_spark, alone)]


def _spent(found: Exploration, begun: float, watch: Watch) -> Spent:
    seconds = time.perf_counter() - begun
    return Spent(found, seconds, watch.processor, watch.bytes / 1e6)


def row(on_spark: Sequence[Spent], alone: Sequence[Spent]) -> dict[str, Any]:
    """Return the row with the medians of both searches."""
    a_step = [each.a_step for each in on_spark], [each.a_step for each in alone]
    return {
        "searched": " ".join(f"{name}={value}" for name, value in GIVEN.items()),
        "unique states": on_spark[0].found.unique_states,
        "generated states": on_spark[0].found.generated_states,
        "seconds": median([each.seconds for each in on_spark]),
        "µs/state": median([each.a_state for each in on_spark]),
        "µs/step": median(a_step[0]),
        "MB in all": round(max(each.megabytes for each in on_spark)),
        "one core: states": alone[0].found.unique_states,
        "its µs/state": median([each.a_state for each in alone]),
        "its µs/step": median(a_step[1]),
        "step vs one core": ratio(*a_step),
    }


@contextmanager
def watched() -> Iterator[Watch]:
    """Observe all processes during a `with` block, which runs in a temporary folder."""
    watch, over = Watch(), threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            watch.look()

    thread = threading.Thread(target=look)
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder, chdir(folder):
        thread.start()
        try:
            yield watch
        finally:
            over.set()
            thread.join()
