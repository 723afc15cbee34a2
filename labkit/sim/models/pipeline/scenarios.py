"""Play scripts in the simulator `pipeline`, and crashes at failpoints.

A script says which faults happen at which failpoint; between them the drivers go on without faults.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labkit.core.errors import JobFailed
from labkit.core.failpoints import Crash, FailPoint, Order, parse_crash
from labkit.core.judge import Verdict
from labkit.core.strategies import Pending, Strategy
from labkit.sim.blueprint import unasked
from labkit.sim.model import Action
from labkit.sim.models.pipeline.claims import NOTIFIED, ZOMBIE
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.state import PARAMETERS, STORES, State
from labkit.sim.parameters import settle
from labkit.sim.verdicts import verdict_of
from labkit.sim.walk import Replay


class Cue(NamedTuple):
    """One entry of a script: the actions to take when a driver first reaches the failpoint `point` in a batch.

    For a failpoint in a recovery, the number of the batch is ignored.
    """

    point: FailPoint
    actions: tuple[str, ...] = ("crash",)
    batch: int = 0


def cues(script: Sequence[str]) -> tuple[Cue, ...]:
    """Parse a script, whose entries have the form `failpoint[@batch] [action ...]`; the default action is a crash."""
    return tuple(_cue(*entry.split()) for entry in script)


def _cue(at: str, *actions: str) -> Cue:
    point, batch = parse_crash(at)
    return Cue(point, actions or ("crash",), batch)


def crashes(points: Sequence[Crash]) -> tuple[Cue, ...]:
    """Return a script that kills the first driver at the first failpoint, its successor at the second, and so on."""
    return tuple(Cue(crash.point, ("crash",), crash.batch) for crash in points)


def play(model: Pipeline, script: Sequence[Cue]) -> Replay:
    """Run a query until nothing is left to do; take each action of the script when its failpoint is reached.

    A driver that was wrongly declared dead resumes when nothing else is left to do. Raises `JobFailed` if the run never
    reaches a failpoint of the script.
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
        raise JobFailed(
            f"the failpoint {waiting[0].point} was never reached in this run; choose another failpoint or batch."
        )
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
    raise JobFailed(
        f"the action {name} should follow the failpoint, but is not possible in this state: {model.text(state)} "
        "Choose another failpoint or action."
    )


def is_modelled(store: str) -> bool:
    """Return whether the simulator can simulate the store of this name."""
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
    """Simulate a small word count (hello, world, hello in one batch) whose drivers die at these failpoints in turn.

    `words` replaces the input, and `source` has parameters for a source other than a log. Raises `JobFailed` if a
    failpoint is never reached, and `InvalidInput` if the store is unknown or the input is too long.
    """
    parameters: dict[str, object] = {"strategy": strategy, "store": store, "crashes": len(points), **(source or {})}
    if words:
        parameters["words"] = "-".join(words)
    if order is not Order.NONE:
        parameters["order"] = order
    return play(Pipeline(settle("pipeline", PARAMETERS, parameters)), crashes(points))


def first_crash(walk: Replay) -> int:
    """Return the number (from 1) of the first step that is a crash. Raises `JobFailed` if the run has no crash."""
    for step, action in enumerate(walk.actions, start=1):
        if action.name == "crash":
            return step
    raise JobFailed("no driver dies in this run, so there is no first crash to show; take a run with a crash.")


def simulate(strategy: Strategy, order: Order, store: str, points: Sequence[Crash]) -> Verdict:
    """Simulate a small word count whose drivers die at these failpoints in turn, and judge its output."""
    return verdict_of(crashed(strategy, order, store, points))


def tells_when_written(walk: Replay) -> bool:
    """Return whether every row that readers cannot see yet is in a transaction of the store.

    If not, such rows may be in a log or in the driver's memory, and the simulator does not know how long they have
    waited.
    """
    assert isinstance(walk.model, Pipeline)
    return walk.model.settings.strategy.facts.pending not in (Pending.LOG, Pending.DRIVER)
