"""How many states of a simulator this machine explores in a second of processor time, beside a simpler search."""

import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import psutil

from bench.rows import Rows
from labkit.search import without_collector
from labkit.search.cores import on_cores
from labkit.sim.explore import explore
from labkit.sim.model import Model
from labkit.sim.trace import Replay, make


class Taken(NamedTuple):
    """The seconds of one round: the search, a minimal search, and the busier of two processes that share a search."""

    full: float
    bare: float
    on_two: float


EXPLORED: dict[str, tuple[str, dict[str, object]]] = {
    "textbook 2PC, 6 participants": ("two_phase_commit", {"textbook": True, "participants": 6}),
    "2PC with failures, 3 participants": ("two_phase_commit", {"participants": 3, "losses": 0}),
    "pipeline, two_phase, 3 batches": ("pipeline", {"crashes": 3, "records_per_batch": 1, "lost_notices": 1}),
    "pipeline, wal, 2 batches": (
        "pipeline",
        {"strategy": "wal", "crashes": 4, "records_per_batch": 2, "lost_notices": 1},
    ),
    "barriers, 2 sources, 2 counts": ("barriers", {}),
    # The same five with more to search: several cores are for these.
    "textbook 2PC, 7 participants": ("two_phase_commit", {"textbook": True, "participants": 7}),
    "2PC with failures, 2 crashes": ("two_phase_commit", {"participants": 3, "losses": 0, "crashes": 2}),
    "pipeline, two_phase, 4 crashes": ("pipeline", {"crashes": 4, "records_per_batch": 1, "lost_notices": 2}),
    "pipeline, wal, 1 rollback": (
        "pipeline",
        {"strategy": "wal", "crashes": 4, "records_per_batch": 2, "lost_notices": 1, "rollbacks": 1},
    ),
    "barriers, 2 crashes": ("barriers", {"crashes": 2}),
}
"""The configurations to explore, by title: a simulator and its parameters."""
STEPS = 200
"""The length of the trace in which a step forward and back is timed."""


def measure(rounds: int) -> Rows:
    """Return rows with states per second, memory, and the time of a step.

    The speed is compared with that of a search without properties, and with that of a search on two cores.
    """
    models = {name: make(model, parameters) for name, (model, parameters) in EXPLORED.items()}
    taken: dict[str, list[Taken]] = {name: [] for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            alone = _seconds(partial(explore, model)), _seconds(partial(bare, model))
            taken[name].append(Taken(*alone, on_two_cores(model)))
    rows = [_explored(name, models[name], taken[name]) for name in models]
    return [*rows, _stepped(rounds)]


def _seconds(work: Callable[[], object]) -> float:
    with without_collector():
        begun = time.process_time()
        work()
        return time.process_time() - begun


def on_two_cores(model: Model[Any]) -> float:
    """Return the processor seconds, without waiting, of the busier of two processes that share a search."""
    with without_collector(), on_cores(model, 2) as shared:
        begun = time.process_time()
        shared.explore()
        spent = [sum(psutil.Process(each.process.pid).cpu_times()[:2]) for each in shared.helpers]
        return max([*spent, time.process_time() - begun])


def bare(model: Model[Any]) -> int:
    """Visit every state once, without properties, parents and limits, as a baseline; return the number of states."""
    level = [model.initial()]
    seen = set(level)
    while level:
        reached = (model.apply(state, action) for state in level for action in model.actions(state))
        level = [
            state
            for state in reached
            if state not in seen and not seen.add(state)  # type: ignore[func-returns-value]  # None on purpose
        ]
    return len(seen)


def _explored(name: str, model: Model[Any], taken: Sequence[Taken]) -> dict[str, Any]:
    result = explore(model)
    seconds = statistics.median(each.full for each in taken)
    return {
        "explored": name,
        "unique states": result.unique_states,
        "generated states": result.generated_states,
        "unique states/s": round(result.unique_states / seconds),
        "generated states/s": round(result.generated_states / seconds),
        "time vs bare search": round(statistics.median(each.full / each.bare for each in taken), 2),
        "speed on two cores": round(statistics.median(each.full / each.on_two for each in taken), 2),
        "bytes/state": _bytes_for_a_state(model),
    }


def _bytes_for_a_state(model: Model[Any]) -> int:
    tracemalloc.start()
    result = explore(model, max_states=20_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return round(peak / result.unique_states)


def _stepped(rounds: int) -> dict[str, Any]:
    walked = long_walk(STEPS)
    last = walked.actions[-1]
    times = []
    for _ in range(100 * rounds):
        begun = time.process_time()
        walked.back()
        walked.forward(last)
        times.append(time.process_time() - begun)
    microseconds = round(statistics.median(times) * 1e6, 1)
    return {"explored": f"a step back and forward in a trace of {STEPS} steps", "microseconds": microseconds}


def long_walk(steps: int) -> Replay:
    """Return a run of two-phase commit that has `steps` steps.

    One participant never votes, so those that have voted stay in doubt and ask for the decision again and again.
    """
    choose, walked = (random.Random(1), Replay(make("two_phase_commit", {"participants": 8})))
    while len(walked.actions) < steps:
        enabled = walked.model.actions(walked.state)
        going_on = [action for action in enabled if action.name in ("start", "read", "hear", "inquire")]
        walked.forward(choose.choice([action for action in going_on if action.which != 7]))
    return walked
