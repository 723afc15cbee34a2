"""The network between processes, hop by hop: what is sent, taken, acknowledged, lost, doubled, and cut off.

Hop h leads from process h to process h + 1. Every function gives the state after one change; none chooses.
This module must not know what a process does with a record.
"""

from labkit.sim.models.delivery.parts import Hop, Message, State
from labkit.sim.rules import one_less

# Built by position: `_replace` would take three times as long, and a state is built for every step of a search.


def _with_hop(state: State, number: int, hop: Hop) -> State:
    processes, at, out, productions, faults = state
    return State(processes, (*at[:number], hop, *at[number + 1 :]), out, productions, faults)


def less(state: State, fault: str) -> State:
    """One fault of this kind fewer may follow."""
    return state._replace(faults=one_less(state.faults, fault))


def send(state: State, hop: int, message: Message) -> State:
    """A record is under way."""
    forward, back, ids = state.hops[hop]
    return _with_hop(state, hop, Hop((*forward, message), back, ids))


def take(state: State, hop: int, *, remembers: bool) -> tuple[State, Message]:
    """The next record is taken; a connection that remembers ids keeps its own."""
    forward, back, ids = state.hops[hop]
    message = forward[0]
    ids |= 1 << message.name if remembers else 0
    return _with_hop(state, hop, Hop(forward[1:], back, ids)), message


def acknowledge(state: State, hop: int, name: int) -> State:
    """An acknowledgement is under way."""
    forward, back, ids = state.hops[hop]
    return _with_hop(state, hop, Hop(forward, (*back, name), ids))


def hear(state: State, hop: int) -> tuple[State, int]:
    """The next acknowledgement is read."""
    forward, back, ids = state.hops[hop]
    return _with_hop(state, hop, Hop(forward, back[1:], ids)), back[0]


def drop(state: State, hop: int) -> State:
    """The next record is lost."""
    return less(take(state, hop, remembers=False)[0], "drops")


def drop_ack(state: State, hop: int) -> State:
    """The next acknowledgement is lost."""
    return less(hear(state, hop)[0], "drops")


def duplicate(state: State, hop: int) -> State:
    """The next record is there a second time, behind all others."""
    return less(send(state, hop, state.hops[hop].forward[0]), "duplicates")


def reorder(state: State, hop: int) -> State:
    """The second record overtakes the first."""
    (first, second, *rest), back, ids = state.hops[hop]
    return less(_with_hop(state, hop, Hop((second, first, *rest), back, ids)), "reorders")


def cut(state: State, process: int) -> State:
    """The connections of a process are gone, with what they carried and what they remembered."""
    for hop in (process - 1, process):
        if 0 <= hop < len(state.hops):
            state = _with_hop(state, hop, Hop())
    return state
