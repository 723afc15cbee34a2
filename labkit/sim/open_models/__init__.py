"""Open models: simulators in which one rule is left open, so that everything which a learner may answer is an action.

A learner's function closes the rule again: `labkit.teach.exercises` asks it, and takes only the actions that it
answers. What happens then is a run of the open model, so a counterexample replays anywhere without the
learner's code. An open model must not contain what would answer its exercise.
"""

from typing import Any

from labkit.core.lazily import Lazily
from labkit.sim.blueprint import Blueprint

__all__ = ["OPEN_MODELS"]

_NAMES = ("deduplication", "alignment", "recovery", "confirmation", "resolution")
OPEN_MODELS: Lazily[Blueprint[Any, Any]] = Lazily(
    "BLUEPRINT", {f"{name}_drill": f"{__name__}.{name}" for name in _NAMES}
)
"""By name; each is imported when it is looked up."""
