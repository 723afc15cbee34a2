"""How each model is drawn: one module a model, one name in `DRAWINGS` to register it.

A scene reads a state and says what is there.
"""

from labkit.core.lazily import Lazily
from labkit.view.scene import Drawing

__all__ = ["DRAWINGS"]

_NAMES = ("delivery", "snapshot", "barriers", "two_phase_commit", "pipeline", "changelog", "kafka_log", "orders")
DRAWINGS: Lazily[Drawing] = Lazily("DRAWING", {name: f"{__name__}.{name}" for name in _NAMES})
"""By the name of the model; each is imported when it is looked up."""
