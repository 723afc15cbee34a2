"""The expected verdict of every crash, written by hand before any crash was run (`expected.toml`).

`labkit matrix` compares it with the verdicts of the simulator and of real Spark.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import POINTS, Strategy

COMPARED = ("guarantee", "lost", "duplicate", "regression", "aborted_read", "precommitted_read", "fractured_read")
"""The fields of a verdict in which expectation, simulation and real run must agree."""


class Cell(NamedTuple):
    """One crash whose verdict is predicted: store, sink, failpoint, and whether the sink or Spark commits first."""

    store: str
    strategy: Strategy
    order: Order
    point: FailPoint

    def __str__(self) -> str:
        order = f" ({self.order.spoken})" if self.order.spoken else ""
        return f"{self.strategy}{order} on {self.store} at {self.point}"


@dataclass(frozen=True)
class Expected:
    """The predicted verdict of one crash, with the reason in one sentence.

    Each list (`lost`, `duplicate` and so on) contains the offsets of the affected records.
    """

    guarantee: str
    lost: list[int]
    duplicate: list[int]
    regression: list[int]
    aborted_read: list[int]
    precommitted_read: list[int]
    fractured_read: list[int]
    reason: str

    def compared(self) -> dict[str, Any]:
        """Return a dict of the fields in which the prediction, the simulation and the real run must agree."""
        return compared(vars(self))


def compared(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict of those fields of a verdict (given as JSON) that are compared with the prediction."""
    return {name: verdict[name] for name in COMPARED}


def expectations() -> dict[Cell, Expected]:
    """Return a dict with every crash in `expected.toml` and its predicted verdict, in the order of that file."""
    text = files("labkit.runs").joinpath("expected.toml").read_text(encoding="utf-8")
    return dict(pair for block in tomllib.loads(text)["block"] for pair in _cells(block))


def _cells(block: dict[str, Any]) -> Iterator[tuple[Cell, Expected]]:
    lists: dict[str, list[int]] = {name: [] for name in COMPARED if name != "guarantee"}
    for point, fields in block["killed"].items():
        expected = Expected(**lists | fields)
        for store in block["stores"]:
            yield Cell(store, Strategy(block["sink"]), Order(block["order"]), FailPoint(point)), expected


def grid(stores: Mapping[str, frozenset[Strategy]]) -> list[Cell]:
    """Return one `Cell` for every store, sink that can write to it, commit order, and failpoint that the sink passes.

    `stores` maps each store to the sinks that can write to it.
    """
    return [
        Cell(store, strategy, order, point)
        for store, able in stores.items()
        for (strategy, order), points in POINTS.items()
        if strategy in able
        for point in points
    ]
