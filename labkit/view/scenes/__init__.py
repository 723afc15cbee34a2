"""Draw the states of simulators, with one module for each simulator; `_NAMES` lists the modules."""

from labkit.core.lazily import Lazily
from labkit.view.scene import Drawing

_NAMES = ("delivery", "snapshot", "barriers", "two_phase_commit", "pipeline", "changelog", "kafka_log", "orders")
DRAWINGS: Lazily[Drawing] = Lazily("DRAWING", {name: f"{__name__}.{name}" for name in _NAMES})
"""The functions that draw each simulator, by the simulator's name; the module is imported on first use."""
