"""The simulators: one package a model, and one line here. Everything else finds a model in `MODELS`.

No model knows another one.
"""

from labkit.sim.blueprint import by_name
from labkit.sim.models import barriers, changelog, delivery, kafka_log, orders, pipeline, snapshot, two_phase_commit

__all__ = ["MODELS"]

MODELS = by_name(
    delivery.BLUEPRINT,
    snapshot.BLUEPRINT,
    barriers.BLUEPRINT,
    two_phase_commit.BLUEPRINT,
    pipeline.BLUEPRINT,
    changelog.BLUEPRINT,
    kafka_log.BLUEPRINT,
    orders.BLUEPRINT,
)
"""By name, in the order in which the course meets them."""
