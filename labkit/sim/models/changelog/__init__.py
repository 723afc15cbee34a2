"""A table that changes, as a stream: a count for each key as append-only, retract and upsert stream, and its reader.

`parts` are the states, `query` the continuous query and the batch query that it must equal, `table` what a consumer
makes of messages, `model` who acts when, `claims` what must hold, `scenarios` the runs that have a name.
"""

from labkit.sim.model import Blueprint
from labkit.sim.models.changelog.model import Changelog
from labkit.sim.models.changelog.settings import PARAMETERS, VERSION

__all__ = ["BLUEPRINT"]

BLUEPRINT = Blueprint(
    "changelog",
    VERSION,
    "A continuous query counts by key and sends every change; a consumer keeps the table that the changes make.",
    PARAMETERS,
    Changelog,
)
