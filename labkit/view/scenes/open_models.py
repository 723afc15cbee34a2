"""Draw the drills: simulators that leave some decisions to the learner, drawn like the complete simulators."""

from labkit.sim.model import Action
from labkit.sim.models.barriers.model import Barriers
from labkit.sim.models.delivery.model import Delivery
from labkit.sim.models.pipeline.model import Pipeline
from labkit.view.scene import Drawing, Place
from labkit.view.scenes import barriers, delivery, pipeline, two_phase_commit


def _alignment(model: Barriers, action: Action) -> Place:
    if action.name != "snapshot":
        return barriers.place(model, action)
    which = action.which
    return Place(f"count{which}" if which < model.settings.counts else "sink", touches=("coordinator",))


def _deduplication(model: Delivery, action: Action) -> Place:
    if not action.name.startswith("put_out"):
        return delivery.place(model, action)
    return Place("process1", touches=("outside",))


_TOUCHES = {
    "settle_commit": ("store", "reader"),
    "settle_abort": ("store",),
    "write_out": ("store", "reader"),
    "confirm_batch": ("folder",),
}


def _pipeline(model: Pipeline, action: Action) -> Place:
    if action.name in _TOUCHES:
        return Place("driver", touches=_TOUCHES[action.name])
    return pipeline.place(model, action)


OPEN_DRAWINGS: dict[str, Drawing] = {
    "alignment_drill": Drawing(barriers.scene, _alignment),
    "deduplication_drill": Drawing(delivery.scene, _deduplication),
    "recovery_drill": two_phase_commit.DRAWING,
    "confirmation_drill": Drawing(pipeline.scene, _pipeline),
    "resolution_drill": Drawing(pipeline.scene, _pipeline),
}
"""The functions that draw each simulator in which learners decide some actions, by its name."""
