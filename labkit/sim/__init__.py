"""Simulators: one file a model, one line in `BLUEPRINTS` to register it.

From here down the core is pure: standard library, no clock, no unseeded chance, no files, no dependence on hash order.
"""

from labkit.sim.model import Blueprint
from labkit.sim.models.barriers import BLUEPRINT as BARRIERS
from labkit.sim.models.changelog import BLUEPRINT as CHANGELOG
from labkit.sim.models.delivery import BLUEPRINT as DELIVERY
from labkit.sim.models.kafka_log import BLUEPRINT as KAFKA_LOG
from labkit.sim.models.pipeline import BLUEPRINT as PIPELINE
from labkit.sim.models.snapshot import BLUEPRINT as SNAPSHOT
from labkit.sim.models.two_phase_commit.model import BLUEPRINT as TWO_PHASE_COMMIT

__all__ = ["MODELS"]

BLUEPRINTS = (
    DELIVERY,
    SNAPSHOT,
    BARRIERS,
    TWO_PHASE_COMMIT,
    PIPELINE,
    CHANGELOG,
    KAFKA_LOG,
)
"""In the order in which the course meets them."""

MODELS: dict[str, Blueprint] = {blueprint.name: blueprint for blueprint in BLUEPRINTS}
