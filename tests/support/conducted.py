"""Several runs with crashes on shared drivers, and their outcomes by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labkit.core.errors import LabError
from labkit.runs.crash import run_all
from labkit.runs.outcome import Outcome
from labkit.runs.prepare import prepare
from labkit.runs.scenario import Scenario


class Outcomes(dict[Any, Outcome | LabError]):
    """By the key of each run; `get` returns also the error of a run that has failed."""

    def __getitem__(self, key: Any) -> Outcome:
        outcome = super().__getitem__(key)
        assert isinstance(outcome, Outcome), f"{key}: {outcome}"
        return outcome


def conducted(scenarios: Mapping[Any, Scenario], base: Path) -> Outcomes:
    """Makes all these runs, each in a folder of its own below `base`."""
    runs = [prepare(scenario, base / f"{number}-{scenario.name}") for number, scenario in enumerate(scenarios.values())]
    outcomes = Outcomes(zip(scenarios, run_all(runs, base / "scratch"), strict=True))
    assert not (base / "scratch").exists()
    return outcomes
