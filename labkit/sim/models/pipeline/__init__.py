"""The simulator `pipeline`, a streaming query with a sink, which has the failpoints and the judge of the real runs."""

from labkit.sim.blueprint import Blueprint, scenarios_of
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.scenarios import cues, play, tells_when_written
from labkit.sim.tasks import tasks_of
from labkit.sim.verdicts import expected_of, history_of, verdict_as_fact

BLUEPRINT = Blueprint(
    Pipeline,
    "A checkpointed word count writes through a sink strategy into an outside store; its driver may die at any step.",
    play,
    scenarios_of(__name__, cues),
    verdict_as_fact,
    history=history_of,
    expected=expected_of,
    tells_when_written=tells_when_written,
    tasks=tasks_of(__name__),
)
