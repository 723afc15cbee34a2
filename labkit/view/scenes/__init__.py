"""How each model is drawn: one module a model, one line in `DRAWINGS` to register it.

A scene reads a state and says what is there. It must not contain a rule of a protocol, and must not change anything.
"""

from labkit.view.scene import Drawing
from labkit.view.scenes import pipeline, two_phase_commit

__all__ = ["DRAWINGS"]

DRAWINGS: dict[str, Drawing] = {
    "two_phase_commit": two_phase_commit.DRAWING,
    "pipeline": pipeline.DRAWING,
}
"""By the name of the model."""
