"""Small tasks for a reader of a simulator, such as "let a word be counted twice": data beside the simulator.

A task states its condition in the simulator's own claims, so whether it is fulfilled follows from their verdicts.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from labkit.sim.parameters import Values


class Task(NamedTuple):
    """A task in one sentence, and its condition on a run; every part of it must be true.

    An author who adds a task names the claims; `tests/view/test_tasks.py` then asks for a run that fulfils it.
    """

    sentence: str
    violated: Sequence[str] = ()
    """The claims that the run has violated."""
    holds: Sequence[str] = ()
    """The claims that hold now; of a claim about the end, this is only known at the end."""
    parameters: Mapping[str, object] = {}
    """The values that some parameters must have."""
    steps: str = ""
    """A regular expression for a part of the run's steps, as its trace writes them: `crash.restart-1`."""

    def fits(self, values: Values, steps: str) -> bool:
        """Return whether the parameters and the steps of a run are as the task wants them; claims are not asked."""
        chosen = all(values[name] == value for name, value in self.parameters.items())
        return chosen and re.search(self.steps, steps) is not None


def tasks_of(package: str) -> dict[str, Task]:
    """Return the tasks in the file `tasks.toml` of a model's package, in its order, which is that of difficulty."""
    tables = tomllib.loads(files(package).joinpath("tasks.toml").read_text(encoding="utf-8"))
    return {name: Task(**table) for name, table in tables.items()}
