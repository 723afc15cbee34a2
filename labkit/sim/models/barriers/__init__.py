"""The simulator of checkpoints by barriers, which flow with the data, and of restarts from these checkpoints."""

from collections.abc import Mapping

from labkit.sim.blueprint import Blueprint, Fact, go_on, scenarios_of
from labkit.sim.model import Action
from labkit.sim.models.barriers.claims import cost
from labkit.sim.models.barriers.model import READS, Barriers
from labkit.sim.tasks import tasks_of
from labkit.sim.walk import Replay

_SETTLES = ("store", "complete", "announce", *READS)
_REQUESTED = ("trigger", "copy")


def play(model: Barriers, script: str) -> Replay:
    """Start the simulator, take a script's steps (action names separated by spaces), and continue to the job's end.

    The step `settle` stands for many actions: tasks read their channels and store their states, and the coordinator
    completes and announces checkpoints, until none of these actions is possible. Raises `InvalidAction` for a step that
    is not enabled.
    """
    walk = Replay(model)
    for step in script.split():
        if step == "settle":
            _settle(walk)
        else:
            walk.forward(Action.parse(step))
    return go_on(walk, model, _first_unasked)


def _first_unasked(enabled: list[Action]) -> Action:
    return next((each for each in enabled if each.name not in _REQUESTED), enabled[0])


def _settle(walk: Replay) -> None:
    while settling := [action for action in walk.model.actions(walk.state) if action.name in _SETTLES]:
        walk.forward(settling[0])


def facts(walk: Replay) -> Mapping[str, Fact]:
    """Return the cost of a run's checkpoints, the latest complete one, and the final word counts and visible rows."""
    assert isinstance(walk.model, Barriers)
    settings = walk.model.settings
    price = cost(settings, walk.states)
    figures: dict[str, Fact] = {
        "held_records": price.held,
        "waiting_records_steps": price.waited,
        "stored_records": price.stored,
        "standing_steps": price.stood,
    }
    coordinator, _, operators, visible, _, _ = walk.state
    if coordinator.completed:
        _, _, _, offsets, states, _ = coordinator.completed[-1]
        state_sum = sum(max(state, 0) for state in states[:-1])
        figures["checkpoint_offsets"] = list(offsets)
        figures["checkpoint_counts"] = settings.totals(state_sum)
    counted = sum(operator.state for operator in operators[:-1])
    return {**figures, "counts": settings.totals(counted), "visible": settings.totals(visible)}


BLUEPRINT = Blueprint(
    Barriers,
    "Barriers flow with the data from sources to a sink, and every task copies its state when they come by.",
    play,
    scenarios_of(__name__),
    facts,
    {
        "held_records": "records that were held back in a blocked channel",
        "waiting_records_steps": "steps after which a record was waiting in a blocked channel",
        "stored_records": "records in flight that complete checkpoints hold",
        "standing_steps": "steps after which a task was standing still until its copy was stored",
        "checkpoint_offsets": "the next offset of each source in the latest complete checkpoint",
        "checkpoint_counts": "the counts in the latest complete checkpoint",
        "counts": "the counts that the running job holds",
        "visible": "how many rows of each word readers see",
    },
    tasks=tasks_of(__name__),
)
