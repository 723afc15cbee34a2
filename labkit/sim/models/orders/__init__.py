"""The simulator of a design: which durable writes a processing step makes, in which order, and what recovery reads."""

from labkit.sim.blueprint import Blueprint, play_to_the_end, scenarios_of
from labkit.sim.models.orders.model import Orders
from labkit.sim.tasks import tasks_of
from labkit.sim.verdicts import history_of, verdict_as_fact

BLUEPRINT = Blueprint(
    Orders,
    "A process makes the durable writes of each step in a given order, may die between two, and restarts from them.",
    play_to_the_end,
    scenarios_of(__name__),
    verdict_as_fact,
    history=history_of,
    tasks=tasks_of(__name__),
)
