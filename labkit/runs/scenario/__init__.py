"""The scenario of a run: its job, store, order of commits and crashes, checked before anything starts.

`scenario` declares every option, `crashes` defines the type of one of them, and `checks` rejects bad combinations.
Nothing in this package starts a process.
"""

from labkit.runs.scenario.checks import check_input
from labkit.runs.scenario.scenario import Scenario, plan

__all__ = ["Scenario", "check_input", "plan"]
