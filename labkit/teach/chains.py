"""Search every combination (chain) of source, engine and sink for schedules that violate a property; show a grid.

`labkit.sim.chains` defines the sources, engines and sinks. For a chain that also ran on real Spark, this module adds
the guarantee of those runs.
"""

from collections.abc import Iterator, Sequence
from functools import cache

from labkit.core.failpoints import Order
from labkit.core.judge import Guarantee, Outcome
from labkit.core.verdict import guarantee
from labkit.runs.expected import expectations
from labkit.sim import chains as links
from labkit.sim.chains import Chain
from labkit.sim.explore import explore
from labkit.sim.trace import make, replay
from labkit.teach.results import Search
from labkit.view.card import Shown
from labkit.view.grid import Grid, Square

ON_THE_WAY = {
    "no_regression": "a value jumps back",
    "no_fractured_read": "half a batch is seen",
    "no_orphan": "a transaction stays open",
}
"""For each property that a run may violate although its final rows are right: what a reader sees meanwhile."""

ON_A_SOCKET = ("append", "two_phase")
"""The sinks that notebook 07 runs with Spark's socket source."""


class Chains(Shown):
    """The results of `lab.chains`: for each chain of source, engine and sink, a search of all its simulated schedules.

    `chains["log", "log-then-commit", "wal"]` returns the result for the chain with this source, engine and sink.
    """

    def __init__(self) -> None:
        self.searches = {each: Search(explore(make("pipeline", each.parameters()))) for each in links.every()}
        self.grid = Grid(
            {(each.source, each.sink, each.engine): _square(each, search) for each, search in self.searches.items()}
        )

    def __getitem__(self, name: tuple[str, str, str]) -> Search:
        """Return the result for the chain with this source, engine and sink.

        Raises `InvalidInput` if one of the three names is unknown.
        """
        return self.searches[links.chain(*name)]

    def __iter__(self) -> Iterator[Chain]:
        return iter(self.searches)

    def __str__(self) -> str:
        return str(self.grid)

    def html(self) -> str:
        return self.grid.html()


@cache
def chains() -> Chains:
    """Search all schedules with at most one crash, for each chain of source, engine and sink; the result is cached."""
    return Chains()


def _square(chain: Chain, search: Search) -> Square:
    shown = next((name for name in ("no_loss", "no_duplicate", *ON_THE_WAY) if name in search.violated), None)
    steps: Sequence[str] = ()
    if shown:
        steps = replay(search.counterexample(shown)).sentences()
    return Square(
        guarantee=search.guarantee.value,
        origin=f"Simulated: every schedule with at most one crash, {search.states} states.",
        because=f"A shortest run that shows it: {search.violated[shown]}" if shown else "No schedule breaks a claim.",
        call=search.call,
        meanwhile=[sentence for name, sentence in ON_THE_WAY.items() if name in search.violated],
        real=spark_guarantee(chain),
        steps=steps,
    )


def spark_guarantee(chain: Chain) -> str:
    """Return a sentence on the guarantee of this chain on real Spark; empty if it never ran there."""
    if chain.source == "log" and chain.keeps_checkpoint:
        worst, points = predicted(chain)
        return f"Real Spark, killed at each of its {points} failpoints (labkit matrix): {worst.value} at worst."
    is_default = chain.order in (Order.NONE, Order.DECISION)
    if chain.source == "socket" and chain.keeps_checkpoint and chain.sink in ON_A_SOCKET and is_default:
        return f"Real Spark with its socket source (notebook 07): {Guarantee.AT_MOST_ONCE.value}."
    return ""


def predicted(chain: Chain) -> tuple[Guarantee, int]:
    """Return a chain's weakest predicted guarantee over all failpoints of real Spark, and the number of these points.

    The predictions are written by hand in `labkit/runs/expected.toml`, and tests compare each with a real run.
    """
    cells = {
        cell: each for cell, each in expectations().items() if (cell.strategy, cell.order) == (chain.sink, chain.order)
    }
    outcomes = {"no_unexpected": False, "no_loss": any(each.lost for each in cells.values())}
    outcomes["no_duplicate"] = any(each.duplicate for each in cells.values())
    worst = guarantee({name: Outcome.VIOLATED if is_so else Outcome.HOLDS for name, is_so in outcomes.items()})
    return worst, len({cell.point for cell in cells})
