"""Waiting for a condition with a deadline, and never for a time."""

import time
from collections.abc import Callable

PATIENCE = 300.0


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Returns when the condition holds; fails with `what` when it does not within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:.0f} s for: {what}"
        time.sleep(0.02)
