"""The barriers model: checkpoints by barriers that flow with the data, and what a restart makes of them.

`settings` is what can be chosen, `parts` are the states, `operators` what one task does with an item, `checkpoints`
what is written and read back, `schedule` what can happen when, `model` what it changes, `cuts` and `claims` what must
hold, `scenarios` the runs that have a name, `cost` what they cost.
"""

from labkit.sim.model import Blueprint
from labkit.sim.models.barriers.model import Barriers
from labkit.sim.models.barriers.settings import PARAMETERS, VERSION

__all__ = ["BLUEPRINT"]

BLUEPRINT = Blueprint(
    "barriers",
    VERSION,
    "Barriers flow with the data from sources to a sink, and every task copies its state when they come by.",
    PARAMETERS,
    Barriers,
)
