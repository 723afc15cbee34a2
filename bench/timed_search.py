"""One search, timed: imported here, and sent as text to a browser's Python, so both run the same lines."""

import json
import time

from labkit.sim.explore import explore
from labkit.sim.trace import make


def timed_search(given: str) -> str:
    """Search all states of a simulator, given as JSON [name, parameters]; return JSON [number of states, seconds]."""
    name, parameters = json.loads(given)
    begun = time.perf_counter()
    found = explore(make(name, parameters))
    return json.dumps([found.unique_states, time.perf_counter() - begun])
