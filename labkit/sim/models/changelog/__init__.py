"""The simulator of a changing table as a stream: a count per key, as an append-only, retract or upsert stream."""

from operator import itemgetter

from labkit.sim.blueprint import Blueprint, go_on, play, scenarios_of
from labkit.sim.models.changelog.model import Changelog
from labkit.sim.tasks import tasks_of
from labkit.sim.walk import Replay


def play_with_the_consumer_first(model: Changelog, steps: str) -> Replay:
    """Take these steps, then continue to the end of the run, while the consumer always reads as soon as it can."""
    return go_on(play(model, steps), model, itemgetter(-1))


BLUEPRINT = Blueprint(
    Changelog,
    "A continuous query counts by key and sends every change; a consumer keeps the table that the changes make.",
    play_with_the_consumer_first,
    scenarios_of(__name__),
    tasks=tasks_of(__name__),
)
