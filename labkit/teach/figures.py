"""The functions of `lab` that draw runs and scenarios as figures."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.runs.outcome import Outcome
from labkit.view import charts
from labkit.view.timeline import by_key

if TYPE_CHECKING:
    from labkit.runs.pages.grid import VerdictGrid
    from labkit.view.totals import Totals


@takes('lab.seen_over_time({"append": outcome}, "hello")')
def seen_over_time(outcomes: Mapping[str, Outcome], key: str) -> charts.Seen:
    """Return a figure of the values that an outside reader saw for one key over time, with one line for each run.

    `outcomes` maps the label of each line to a result of `lab.crash`; `key` is a word of the input, such as `"hello"`.
    """
    tracks = {name: by_key(outcome.record.events).get(key, []) for name, outcome in outcomes.items()}
    return charts.seen_over_time(tracks, key)


@takes("lab.matrix(folder)")
def matrix(folder: Path | str | None = None) -> "VerdictGrid":
    """Return a table of the guarantee of every sink at every failpoint (crash point).

    `folder` contains the results of real runs of `labkit matrix`; without it, labkit simulates every run. Raises
    `InvalidInput` if the folder contains no runs.
    """
    from labkit.runs.pages.grid import of_runs, simulated

    return simulated() if folder is None else of_runs(Path(folder))


@takes('lab.totals("changelog.retract_stream")')
def totals(*scenarios: str) -> "Totals":
    """Return a figure that compares, for each run, a reader's total from a changelog with the total of a batch query.

    `scenarios` are the names of predefined runs of the simulator `changelog`. Raises `InvalidInput` if a name is
    unknown or belongs to another simulator.
    """
    from labkit.teach.study import replay
    from labkit.view.totals import Totals, totals_in

    if not scenarios:
        raise InvalidInput('lab.totals() needs a scenario, as in lab.totals("changelog.retract_stream").')
    return Totals({name.rpartition(".")[2].replace("_", " "): totals_in(replay(name).walk) for name in scenarios})
