"""Searches of every model, which several processes share in the tests: model and options by name."""

from typing import Any

SEARCHES: dict[str, tuple[str, dict[str, Any]]] = {
    "2pc": ("two_phase_commit", {}),
    "2pc, blocked": ("two_phase_commit", {"coordinator_returns": False}),
    "2pc, heuristic": ("two_phase_commit", {"broken": "heuristic", "crashes": 2}),
    "2pc, early": ("two_phase_commit", {"broken": "early"}),
    "textbook": ("two_phase_commit", {"textbook": True, "participants": 4}),
    "pipeline, append": ("pipeline", {"strategy": "append"}),
    "pipeline, wal": ("pipeline", {"strategy": "wal", "crashes": 2}),
    "barriers": ("barriers", {"counts": 1}),
    "delivery": ("delivery", {}),
    "snapshot": ("snapshot", {}),
    "changelog": ("changelog", {}),
    "kafka_log": ("kafka_log", {}),
    "orders": ("orders", {}),
}
