"""The snapshot model: money flows between processes while a snapshot of all of them is taken.

`parts` are the states, `model` the rules, `claims` what must hold, `telling` the words, `scenarios` the runs that have
a name.
"""

from labkit.sim.model import Blueprint
from labkit.sim.models.snapshot.model import PARAMETERS, VERSION, Bank

__all__ = ["BLUEPRINT"]

BLUEPRINT = Blueprint(
    "snapshot",
    VERSION,
    "Processes send each other money while a snapshot is taken: naively, by stopping the world, or with markers.",
    PARAMETERS,
    Bank,
)
