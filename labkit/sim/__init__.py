"""Simulators: one file a model, one line in `BLUEPRINTS` to register it.

From here down the core is pure: standard library, no clock, no unseeded chance, no files, no dependence on hash order.
"""

from labkit.sim.barriers import BLUEPRINT as BARRIERS
from labkit.sim.changelog import BLUEPRINT as CHANGELOG
from labkit.sim.delivery import BLUEPRINT as DELIVERY
from labkit.sim.kafka_log import BLUEPRINT as KAFKA_LOG
from labkit.sim.model import Blueprint
from labkit.sim.pipeline import BLUEPRINT as PIPELINE
from labkit.sim.snapshot import BLUEPRINT as SNAPSHOT
from labkit.sim.two_phase_commit import BLUEPRINT as TWO_PHASE_COMMIT

__all__ = ["MODELS"]

BLUEPRINTS = (DELIVERY, SNAPSHOT, BARRIERS, TWO_PHASE_COMMIT, PIPELINE, CHANGELOG, KAFKA_LOG)
"""In the order in which the course meets them."""

MODELS: dict[str, Blueprint] = {blueprint.name: blueprint for blueprint in BLUEPRINTS}
