"""Drills: simulators in which one rule is left open, so that everything which a learner may answer is an action.

A learner's function closes the rule again: `labkit.teach.exercises` asks it, and takes only the actions that it
answers. What happens then is a run of the open model, so a counterexample replays anywhere without the
learner's code. A drill must not contain what would answer its exercise.
"""

from labkit.sim.model import Blueprint
from labkit.sim.open_models.alignment import BLUEPRINT as ALIGNMENT
from labkit.sim.open_models.confirmation import BLUEPRINT as CONFIRMATION
from labkit.sim.open_models.deduplication import BLUEPRINT as DEDUPLICATION
from labkit.sim.open_models.recovery import BLUEPRINT as RECOVERY
from labkit.sim.open_models.resolution import BLUEPRINT as RESOLUTION

__all__ = ["DRILLS"]

DRILLS: dict[str, Blueprint] = {
    blueprint.name: blueprint
    for blueprint in (DEDUPLICATION, ALIGNMENT, RECOVERY, CONFIRMATION, RESOLUTION)
}
