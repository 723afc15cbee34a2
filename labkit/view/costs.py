"""Figures of what a guarantee costs in the simulators, counted in their steps: a model has no clock.

Each function returns the figure and the data that it shows. This module must not simulate and must not judge.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from labkit.core.errors import InvalidInput
from labkit.sim.models.barriers.cost import cost, waiting
from labkit.sim.models.barriers.model import Barriers
from labkit.sim.models.pipeline.latency import Wait
from labkit.sim.trace import Replay
from labkit.view.charts import BLUE, GREY, ORANGE, chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHAPES = "osD^vP*X"
"""A shape for each record, by its place in the input; the simulated input has at most eight."""

Waits: TypeAlias = "tuple[Figure, dict[str, list[Wait]]]"
"""A figure, and for each sink its records with the steps that they waited."""


def until_visible(sinks: Mapping[str, Sequence[Wait]]) -> Waits:
    """For each sink how many steps each record waits from the plan of its batch until a reader can see it."""
    figure = chart(7.5, 1.2 + 0.62 * len(sinks))
    axes = figure.subplots()
    for row, waits in enumerate(sinks.values()):
        steps = [wait.steps for wait in waits if wait.steps is not None]
        axes.plot([0, max(steps, default=0)], [row, row], color=GREY, linewidth=1, zorder=1)
        for wait in waits:
            if wait.steps is not None:  # one below the other: many wait equally long
                place = row + 0.18 * (wait.offset - (len(waits) - 1) / 2)
                axes.scatter([wait.steps], [place], s=40, c=BLUE, marker=SHAPES[wait.offset], zorder=2)
        label = (
            f"{min(steps)} to {max(steps)}" if steps and min(steps) < max(steps) else str(max(steps, default="never"))
        )
        axes.annotate(label, (max(steps, default=0), row), (10, -3), textcoords="offset points", fontsize=9)
    axes.set_yticks(range(len(sinks)), list(sinks), fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.margins(x=0.14, y=0.12)
    records = {wait.offset: wait.word for waits in sinks.values() for wait in waits}
    for offset, word in sorted(records.items()):
        axes.scatter([], [], s=50, c=BLUE, marker=SHAPES[offset], label=f"{offset} {word}")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=9, title="record", title_fontsize=9, frameon=False)
    axes.set_title("How long a record waits until it can be read", loc="left", fontsize=11)
    axes.set_xlabel("steps of the simulator from the plan of the batch, not seconds", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, {name: list(waits) for name, waits in sinks.items()}


class HeldRecords(NamedTuple):
    """One run: after every step the records that wait in blocked channels, and what its checkpoints had to store."""

    waiting: list[int]
    stored: int

    @property
    def most(self) -> int:
        """The most records that waited at once."""
        return max(self.waiting, default=0)


def held_in(walk: Replay) -> HeldRecords:
    """What the checkpoints of a walk held back and stored. Raises `InvalidInput` for another model's walk."""
    if not isinstance(walk.model, Barriers):
        raise InvalidInput(f"{walk.model.name} has no barriers that could hold a record back; name one of barriers.*.")
    settings = walk.model.settings
    return HeldRecords(waiting(settings, walk.states), cost(settings, walk.states).stored)


Helds: TypeAlias = "tuple[Figure, dict[str, HeldRecords]]"
"""A figure, and what it shows of each run."""


def held_back(runs: Mapping[str, HeldRecords]) -> Helds:
    """For each run how many records barrier alignment holds back, step by step."""
    figure = chart(7.5, 1.2 + 0.95 * len(runs))
    rows = figure.subplots(len(runs), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    for axes, (name, held) in zip(rows, runs.items(), strict=True):
        steps = list(range(len(held.waiting)))
        axes.fill_between(steps, held.waiting, step="post", color=ORANGE, alpha=0.25, hatch="//", edgecolor=ORANGE)
        axes.plot(steps, held.waiting, color=ORANGE, drawstyle="steps-post", linewidth=1.6)
        if held.most:
            at = (held.waiting.index(held.most), held.most)
            axes.annotate(f"{held.most} held back", at, (2, 4), textcoords="offset points", fontsize=9)
        label = f"{sum(map(bool, held.waiting))} steps with records held back; {held.stored} in flight stored"
        axes.annotate(label, (1, 1), (0, -2), "axes fraction", textcoords="offset points", ha="right", fontsize=8.5)
        axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
        axes.set_yticks(range(max(each.most for each in runs.values()) + 1))
        axes.margins(y=0.6)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    rows[0].set_title("Records that wait in blocked channels", loc="left", fontsize=11)
    rows[-1].set_xlabel("steps of the simulator, not seconds", fontsize=9)
    return figure, dict(runs)
