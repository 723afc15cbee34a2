"""The simulators (models): each is a package here and has one line in `_NAMES`; all other code finds it in `MODELS`.

Simulators do not import each other, and `MODELS` imports a simulator only when somebody looks it up.
"""

from typing import Any

from labkit.core.lazily import Lazily
from labkit.sim.blueprint import Blueprint

_NAMES = ("delivery", "snapshot", "barriers", "two_phase_commit", "pipeline", "changelog", "kafka_log", "orders")
MODELS: Lazily[Blueprint[Any, Any]] = Lazily("BLUEPRINT", {name: f"{__name__}.{name}" for name in _NAMES})
"""The simulators by name, in the order in which the course introduces them."""
