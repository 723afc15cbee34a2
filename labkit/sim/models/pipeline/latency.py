"""How long a record waits until a reader can see it: in steps of the simulator, which has no clock.

This module must not judge; a record that never becomes visible has no end.
"""

from typing import NamedTuple

from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.scenarios import play
from labkit.sim.models.pipeline.settings import PARAMETERS
from labkit.sim.parameters import settle
from labkit.sim.walk import Replay


class Wait(NamedTuple):
    """One record: the step that planned its batch, and the first step after which a reader could see it."""

    offset: int
    word: str
    planned: int
    visible: int | None

    @property
    def steps(self) -> int | None:
        """Steps between the two; None for a record that is never seen."""
        return None if self.visible is None else self.visible - self.planned


def undisturbed(strategy: Strategy, order: Order, store: str, words: str, records_per_batch: int) -> Replay:
    """A run in which nothing goes wrong. Raises `InvalidInput` for what cannot be chosen."""
    parameters = {
        "strategy": strategy,
        "store": store,
        "crashes": 0,
        "words": words,
        "records_per_batch": records_per_batch,
    }
    if order is not Order.NONE:
        parameters["order"] = order
    return play(Pipeline(settle("pipeline", PARAMETERS, parameters)), ())


def waits(walk: Replay) -> list[Wait]:
    """Every planned record of a walk through the pipeline, in order."""
    assert isinstance(walk.model, Pipeline)
    planned: dict[int, int] = {}
    visible: dict[int, int] = {}
    for step, state in enumerate(walk.states):
        for offset in range(max(state.query.ends, default=0)):
            planned.setdefault(offset, step)
        for row in state.seen:
            if row.offset >= 0:
                visible.setdefault(row.offset, step)
    words = walk.model.settings.words
    return [Wait(offset, words[offset], step, visible.get(offset)) for offset, step in planned.items()]
