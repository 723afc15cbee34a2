"""The simulator of delivery: records pass through a chain of processes over an unreliable network."""

from collections.abc import Mapping

from labkit.sim.blueprint import Blueprint, Fact, play_to_the_end, scenarios_of
from labkit.sim.models.delivery.claims import executions, waited
from labkit.sim.models.delivery.model import Delivery
from labkit.sim.tasks import tasks_of
from labkit.sim.verdicts import verdict_of
from labkit.sim.walk import Replay


def facts(walk: Replay) -> Mapping[str, Fact]:
    """Return a run's verdict, how often each process handled each record, and how long each process kept records.

    A process keeps a record as long as it may have to send the record again; the time is counted in steps.
    """
    worked = [count for counts in executions(walk.states) for count in counts]
    return {"verdict": verdict_of(walk), "executions": worked, "waiting_steps": list(waited(walk.states))}


BLUEPRINT = Blueprint(
    Delivery,
    "Records go down a chain of processes; messages are lost, doubled, delayed and reordered, and processes die.",
    play_to_the_end,
    scenarios_of(__name__),
    facts,
    {
        "executions": "how often each process worked on each record",
        "waiting_steps": "steps for which each process had something that it must be able to send again",
    },
    tasks=tasks_of(__name__),
)
