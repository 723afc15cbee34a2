"""Open models: simulators in which one rule is left open, so that everything which a learner may answer is an action.

A learner's function closes the rule again: `labkit.teach.exercises` asks it, and takes only the actions that it
answers. What happens then is a run of the open model, so a counterexample replays anywhere without the
learner's code. An open model must not contain what would answer its exercise.
"""

from labkit.sim.blueprint import by_name
from labkit.sim.open_models import alignment, confirmation, deduplication, recovery, resolution

__all__ = ["OPEN_MODELS"]

OPEN_MODELS = by_name(
    deduplication.BLUEPRINT, alignment.BLUEPRINT, recovery.BLUEPRINT, confirmation.BLUEPRINT, resolution.BLUEPRINT
)
"""By name."""
