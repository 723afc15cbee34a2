"""Figures of runs and scenarios that a notebook draws beside the numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.core.asked import takes
from labkit.core.errors import InvalidInput
from labkit.runs.outcome import Outcome
from labkit.view import charts
from labkit.view.timeline import by_key

if TYPE_CHECKING:
    from labkit.runs.pages.grid import VerdictGrid
    from labkit.view.totals import Totals


@takes('lab.seen_over_time({"append": outcome}, "hello")')
def seen_over_time(outcomes: Mapping[str, Outcome], key: str) -> charts.Seen:
    """A figure of what an outside reader could have seen of `key` in each run, and the data that it shows."""
    tracks = {name: by_key(outcome.record.events).get(key, []) for name, outcome in outcomes.items()}
    return charts.seen_over_time(tracks, key)


@takes('lab.done_and_left({"append": outcome})')
def done_and_left(outcomes: Mapping[str, Outcome]) -> charts.Done:
    """A figure of the mails that the job `shop` has sent in each run, beside the rows that are left, and its data."""
    return charts.done_and_left(
        {
            name: [charts.Counted(order.key, sent, left) for order, sent, left in outcome.done_and_left()]
            for name, outcome in outcomes.items()
        }
    )


@takes("lab.matrix(folder)")
def matrix(folder: Path | str | None = None) -> "VerdictGrid":
    """Sinks by failpoints: the real runs in a folder of `labkit matrix`, or without one every cell in the simulator.

    Raises `InvalidInput` for a folder without runs.
    """
    from labkit.runs.pages.grid import of_runs, simulated

    return simulated() if folder is None else of_runs(Path(folder))


@takes('lab.totals("changelog.retract_stream")')
def totals(*scenarios: str) -> "Totals":
    """A figure of what a reader finds who adds up a table that messages change, beside the batch query's total.

    Takes named scenarios of `changelog`. Raises `InvalidInput` for one that is unknown or of another model.
    """
    from labkit.teach.study import replay
    from labkit.view.totals import Totals, totals_in

    if not scenarios:
        raise InvalidInput('lab.totals() needs a scenario, as in lab.totals("changelog.retract_stream").')
    return Totals({name.rpartition(".")[2].replace("_", " "): totals_in(replay(name).walk) for name in scenarios})
