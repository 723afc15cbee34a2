"""Scripts of the pipeline simulator, and simulated crashes at failpoints.

A script says which faults happen at which failpoint; between them the drivers go on without faults.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labkit.core.errors import JobFailed
from labkit.core.failpoints import Crash, FailPoint, Order, parse_crash
from labkit.core.judge import Verdict
from labkit.core.records import History, Record
from labkit.core.strategies import Pending, Strategy
from labkit.sim.blueprint import unasked
from labkit.sim.model import Action
from labkit.sim.models.pipeline.claims import NOTIFIED, ZOMBIE, Judge, expected
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.state import PARAMETERS, STORES, State
from labkit.sim.parameters import settle
from labkit.sim.walk import Replay


class Cue(NamedTuple):
    """One entry of a script: the actions to take when a driver first reaches this failpoint in this batch.

    At a failpoint of recovery, the batch does not matter.
    """

    point: FailPoint
    actions: tuple[str, ...] = ("crash",)
    batch: int = 0


def cues(script: Sequence[str]) -> tuple[Cue, ...]:
    """Return a script from its text: each entry is a failpoint, perhaps with a batch, and actions; none is a crash."""
    return tuple(_cue(*entry.split()) for entry in script)


def _cue(at: str, *actions: str) -> Cue:
    point, batch = parse_crash(at)
    return Cue(point, actions or ("crash",), batch)


def crashes(points: Sequence[Crash]) -> tuple[Cue, ...]:
    """Return the script that kills the nth driver at the nth point."""
    return tuple(Cue(crash.point, ("crash",), crash.batch) for crash in points)


def play(model: Pipeline, script: Sequence[Cue]) -> Replay:
    """Run the drivers until nothing is left to do, and take the actions of the script at their failpoints.

    A zombie driver wakes up when nothing else is left to do. Raises `JobFailed` if a failpoint of the script is never
    reached.
    """
    walk, waiting = Replay(model), list(script)
    while going_on := unasked(model, walk.state):
        awake = [action for action in going_on if not action.name.startswith(ZOMBIE)]
        action = (awake or going_on)[0]
        before = walk.state
        walk.forward(action)
        if waiting and _is_met(model, before, action, waiting[0]):
            for name in waiting.pop(0).actions:
                walk.forward(_named(model, walk.state, name))
    if waiting:
        raise JobFailed(f"the failpoint {waiting[0].point} was never reached: the run ended without it.")
    return walk


def _is_met(model: Pipeline, before: State, action: Action, cue: Cue) -> bool:
    driver = before.query.driver
    if cue.point not in model.reached(before, action):
        return False
    if cue.point.in_recovery or action.name == "plan":
        return cue.point.in_recovery or action.which == cue.batch
    tasks = driver.settling if action.name.startswith(NOTIFIED) else driver.todo
    return tasks[0].batch == cue.batch


def _named(model: Pipeline, state: State, name: str) -> Action:
    for action in model.actions(state):
        if name in (action.name, str(action)):
            return action
    raise JobFailed(f"{name} is not an enabled action in {model.text(state)}")


def is_modelled(store: str) -> bool:
    """Return whether the pipeline models this kind of store."""
    return store in STORES


def crashed(
    strategy: Strategy,
    order: Order,
    store: str,
    points: Sequence[Crash],
    words: Sequence[str] = (),
    *,
    source: Mapping[str, object] | None = None,
) -> Replay:
    """Return a run of the small job (hello, world, hello in one batch) whose nth driver is killed at the nth point.

    `source` holds the parameters of a source other than a log, and `words` another input, still in one batch.
    Raises `JobFailed` if a point is never reached, and `InvalidInput` if the store is not modelled or the input
    is too long.
    """
    parameters: dict[str, object] = {"strategy": strategy, "store": store, "crashes": len(points), **(source or {})}
    if words:
        parameters["words"] = "-".join(words)
    if order is not Order.NONE:
        parameters["order"] = order
    return play(Pipeline(settle("pipeline", PARAMETERS, parameters)), crashes(points))


def first_crash(walk: Replay) -> int:
    """Return the number of the step at which the first crash happens; the state before it has reached the failpoint.

    Raises `JobFailed` if the run contains no crash.
    """
    for step, action in enumerate(walk.actions, start=1):
        if action.name == "crash":
            return step
    raise JobFailed("this run contains no crash.")


def simulate(strategy: Strategy, order: Order, store: str, points: Sequence[Crash]) -> Verdict:
    """Return the judge's verdict on a simulated run with these crashes."""
    return verdict(crashed(strategy, order, store, points))


def history(walk: Replay) -> History:
    """Return the rows that an outside reader saw in a run."""
    assert isinstance(walk.model, Pipeline)
    return Judge(walk.model.settings).history(walk.state)


def due(walk: Replay) -> Sequence[Record]:
    """Return the records that should come out of a run."""
    assert isinstance(walk.model, Pipeline)
    return expected(walk.model.settings.words)


def tells_when_written(walk: Replay) -> bool:
    """Return whether every row that readers cannot see yet is in a transaction of the store.

    The alternatives are a log or the driver's memory, in which case nobody can tell how long a row has waited.
    """
    assert isinstance(walk.model, Pipeline)
    return walk.model.settings.strategy.facts.pending not in (Pending.LOG, Pending.DRIVER)


def verdict(walk: Replay) -> Verdict:
    """Return the judge's verdict on the end of a run."""
    assert isinstance(walk.model, Pipeline)
    return Judge(walk.model.settings).verdict(walk.state)
