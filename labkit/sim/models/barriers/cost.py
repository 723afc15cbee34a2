"""What checkpoints cost, read off the states of a walk, so that no state has to carry it.

Aligned checkpoints make records wait, unaligned ones store them; a task whose copy is not made in the background
stands still. Counted in records and steps: a model has no clock.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from labkit.sim.models.barriers.operators import is_blocked
from labkit.sim.models.barriers.parts import BARRIER, State
from labkit.sim.models.barriers.settings import Copying, Settings


class Cost(NamedTuple):
    """The price of the checkpoints of a walk."""

    held: int
    """Records that were held back in a blocked channel."""
    waited: int
    """Steps after which a record was waiting in a blocked channel."""
    stored: int
    """Records in flight that complete checkpoints hold."""
    stood: int
    """Steps after which a task was standing still until its copy was stored."""


def cost(settings: Settings, states: Sequence[State]) -> Cost:
    """What the checkpoints of a walk have cost so far."""
    held = waited = stood = 0
    before: dict[int, int] = {}
    stored: dict[int, int] = {}
    for state in states:
        blocked = dict(_blocked(settings, state))
        held += sum(max(count - before.get(channel, 0), 0) for channel, count in blocked.items())
        waited += any(blocked.values())
        before = blocked
        stood += settings.copying is Copying.STANDING and any(
            checkpoint.taken & ~checkpoint.acked for checkpoint in state.coordinator.pending
        )
        stored |= {each.id: len(b"".join(each.flight)) for each in state.coordinator.completed}
    return Cost(held, waited, sum(stored.values()), stood)


def _blocked(settings: Settings, state: State) -> Iterator[tuple[int, int]]:
    """Every blocked channel with the number of records that wait in it."""
    if state.coordinator.running:
        for channel, (which, into) in enumerate(settings.channels):
            operator = state.operators[which]
            if is_blocked(settings.rules, operator, into):
                yield channel, sum(item < BARRIER for item in operator.inputs[into])
