"""A scenario: what runs, on which store, how it commits, and where it is killed. Checked before anything starts.

`scenario` has the one declaration of every option, `options` and `kinds` say what an option is, `arguments` derives
signatures from them. Nothing in this package starts anything.
"""

from labkit.runs.scenario.checks import check_input
from labkit.runs.scenario.scenario import Scenario, plan

__all__ = ["Scenario", "check_input", "plan"]
