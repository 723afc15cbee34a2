"""The simulators: one package a model, and one line here. Everything else finds a model in `MODELS`.

No model knows another one, and a model is imported when it is looked up.
"""

from typing import Any

from labkit.core.lazily import Lazily
from labkit.sim.blueprint import Blueprint

__all__ = ["MODELS"]

_NAMES = ("delivery", "snapshot", "barriers", "two_phase_commit", "pipeline", "changelog", "kafka_log", "orders")
MODELS: Lazily[Blueprint[Any, Any]] = Lazily("BLUEPRINT", {name: f"{__name__}.{name}" for name in _NAMES})
"""By name, in the order in which the course meets them."""
