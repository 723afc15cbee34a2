"""The simulator `pipeline`, a streaming query with a sink, which has the failpoints and the judge of the real runs."""

from collections.abc import Mapping

from labkit.sim.blueprint import Blueprint, Fact, scenarios_of
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.scenarios import cues, due, history, play, tells_when_written, verdict
from labkit.sim.tasks import tasks_of
from labkit.sim.walk import Replay

__all__ = ["BLUEPRINT"]


def facts(walk: Replay) -> Mapping[str, Fact]:
    """Return results of a run as a mapping: only the verdict, which says which rows are lost or duplicated."""
    return {"verdict": verdict(walk)}


BLUEPRINT = Blueprint(
    Pipeline,
    "A checkpointed word count writes through a sink strategy into an outside store; anything may die at any step.",
    play,
    scenarios_of(__name__, cues),
    facts,
    history=history,
    expected=due,
    tells_when_written=tells_when_written,
    tasks=tasks_of(__name__),
)
