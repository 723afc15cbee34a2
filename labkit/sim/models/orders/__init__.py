"""The simulator of a design: which durable writes a processing step makes, in which order, and what recovery reads."""

from collections.abc import Mapping

from labkit.core.records import History
from labkit.sim.blueprint import Blueprint, Fact, play_to_the_end, scenarios_of
from labkit.sim.models.orders.claims import Judge
from labkit.sim.models.orders.model import Orders
from labkit.sim.tasks import tasks_of
from labkit.sim.walk import Replay

__all__ = ["BLUEPRINT"]


def _judge(walk: Replay) -> Judge:
    model = walk.model
    assert isinstance(model, Orders)
    return Judge(model.settings)


def _facts(walk: Replay) -> Mapping[str, Fact]:
    return {"verdict": _judge(walk).verdict(walk.state)}


def _history(walk: Replay) -> History:
    return _judge(walk).history(walk.state)


BLUEPRINT = Blueprint(
    Orders,
    "A step makes durable writes in an order, dies between any two of them, and restarts from what it noted.",
    play_to_the_end,
    scenarios_of(__name__),
    _facts,
    {},
    _history,
    tasks=tasks_of(__name__),
)
