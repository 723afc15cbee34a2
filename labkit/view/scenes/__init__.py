"""How each model is drawn: one module a model, one line in `DRAWINGS` to register it.

A scene reads a state and says what is there.
"""

from labkit.view.scene import Drawing
from labkit.view.scenes import barriers, changelog, delivery, kafka_log, orders, pipeline, snapshot, two_phase_commit

__all__ = ["DRAWINGS"]

DRAWINGS: dict[str, Drawing] = {
    "delivery": delivery.DRAWING,
    "snapshot": snapshot.DRAWING,
    "barriers": barriers.DRAWING,
    "two_phase_commit": two_phase_commit.DRAWING,
    "pipeline": pipeline.DRAWING,
    "changelog": changelog.DRAWING,
    "kafka_log": kafka_log.DRAWING,
    "orders": orders.DRAWING,
}
"""By the name of the model."""
