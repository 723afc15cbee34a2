"""The pipeline model: the scenarios of the real runner, with the same failpoints and the same judge.

`parts` are the states, `programs` what drivers do, `effects` what that changes, `model` who acts when, `claims` what
must hold, `scenarios` the runs that have a name.
"""

from labkit.sim.model import Blueprint
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.settings import PARAMETERS, VERSION

__all__ = ["BLUEPRINT"]

BLUEPRINT = Blueprint(
    "pipeline",
    VERSION,
    "A checkpointed word count writes through a sink strategy into an outside store; anything may die at any step.",
    PARAMETERS,
    Pipeline,
)
