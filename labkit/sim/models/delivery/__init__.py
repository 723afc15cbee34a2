"""The delivery model: records go down a chain of processes over a network that cannot be trusted.

`parts` are the states, `settings` what may be chosen, `network` what lies between processes, `model` the rules,
`claims` what must hold, `telling` the words, `scenarios` the runs that have a name.
"""

from labkit.sim.model import Blueprint
from labkit.sim.models.delivery.model import Delivery
from labkit.sim.models.delivery.settings import PARAMETERS, VERSION

__all__ = ["BLUEPRINT"]

BLUEPRINT = Blueprint(
    "delivery",
    VERSION,
    "Records go down a chain of processes; messages are lost, doubled, delayed and reordered, and processes die.",
    PARAMETERS,
    Delivery,
)
