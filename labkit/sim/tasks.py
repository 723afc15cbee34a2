"""Tasks for a learner who steps through a simulator, such as "let a word be counted twice", in a file `tasks.toml`.

A task names properties (claims) of the simulator that the learner's run must violate or fulfil.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from labkit.sim.parameters import Values


class Task(NamedTuple):
    """An exercise for a learner who steps through a simulator: a sentence, and conditions that the run must fulfil.

    For every exercise, add a run that fulfils its conditions to `tests/view/test_tasks.py`.
    """

    sentence: str
    violated: Sequence[str] = ()
    """The names of the properties (claims) that the run must have violated."""
    holds: Sequence[str] = ()
    """The names of the claims (properties) that must hold now. A claim about the end of a run holds only then."""
    parameters: Mapping[str, object] = {}
    """The values that some of the simulator's parameters must have."""
    steps: str = ""
    """A regular expression for a part of the run's steps in the form of a trace, for example `crash.restart-1`."""

    def fits(self, values: Values, steps: str) -> bool:
        """Return whether a run has the parameter values and the steps that the exercise demands.

        The other conditions, `violated` and `holds`, are not checked.
        """
        chosen = all(values[name] == value for name, value in self.parameters.items())
        return chosen and re.search(self.steps, steps) is not None


def tasks_of(package: str) -> dict[str, Task]:
    """Return a dict from name to exercise, the easiest first, read from `tasks.toml` in a simulator's package."""
    tables = tomllib.loads(files(package).joinpath("tasks.toml").read_text(encoding="utf-8"))
    return {name: Task(**table) for name, table in tables.items()}
