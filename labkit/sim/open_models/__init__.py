"""Open models: simulators in which a learner's function decides some actions.

Every answer that the function could give is enabled. `labkit.teach.exercises` calls the function and takes only the
actions that it returns. The result is a run of the open model, so a counterexample can be replayed without the
learner's code. An open model does not contain the answer to its exercise.
"""

from typing import Any

from labkit.core.lazily import Lazily
from labkit.sim.blueprint import Blueprint

_NAMES = ("deduplication", "alignment", "recovery", "confirmation", "resolution")
OPEN_MODELS: Lazily[Blueprint[Any, Any]] = Lazily(
    "BLUEPRINT", {f"{name}_drill": f"{__name__}.{name}" for name in _NAMES}
)
"""The open models by name; each is imported when it is first used."""
