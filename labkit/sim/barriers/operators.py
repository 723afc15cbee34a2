"""What one task does with the next item of a channel: count a record, react to a barrier, come to its end.

Every rule is a function of that task alone, so that a search can remember its result: there are few states of one
task and very many of the job. The coordinator and the other tasks learn of it by what `Taken` says.
"""

from typing import NamedTuple

from labkit.sim.barriers.parts import BARRIER, END, ENDED, Operator, live, once
from labkit.sim.barriers.settings import Barriers


class Taken(NamedTuple):
    """A task after an item, and what others learn of it.

    `sent` goes to the task's output, `copied` is the checkpoint for which it has just copied its state (0: none),
    `acked` the one that is complete as far as this task is concerned, `logged` the one whose channel state the
    record belongs to.
    """

    operator: Operator
    sent: bytes = b""
    copied: int = 0
    acked: int = 0
    logged: int = 0


def arrive(operator: Operator, channel: int, items: bytes) -> Operator:
    """The task after something came in by a channel."""
    inputs, at, done, state, sealed = operator
    return Operator((*inputs[:channel], inputs[channel] + items, *inputs[channel + 1 :]), at, done, state, sealed)


def overtake(operator: Operator, channel: int, item: bytes) -> tuple[Operator, bytes]:
    """The task after a barrier came in ahead of the records that wait in a channel, and these records.

    Barriers do not overtake each other.
    """
    inputs, at, done, state, sealed = operator
    records = inputs[channel].lstrip(bytes(range(BARRIER, ENDED)))
    queue = inputs[channel].removesuffix(records) + item + records
    return Operator((*inputs[:channel], queue, *inputs[channel + 1 :]), at, done, state, sealed), records


def is_blocked(rules: Barriers, operator: Operator, channel: int) -> bool:
    """Whether a channel waits for the barriers of the others."""
    _, at, done, _, _ = operator
    return rules.blocks and done < at[channel] < ENDED and at[channel] == max(live(at))


def take(rules: Barriers, operator: Operator, channel: int) -> Taken:
    """The task after the next item of a channel."""
    inputs, at, done, state, sealed = operator
    item = inputs[channel][0]
    left = (*inputs[:channel], inputs[channel][1:], *inputs[channel + 1 :])
    if item < BARRIER:
        logged = done if rules.saves and at[channel] < done else 0
        return Taken(Operator(left, at, done, state + once(item), sealed), bytes((item,)), logged=logged)
    came = item if item == ENDED else item - BARRIER
    at = bytes((*at[:channel], came, *at[channel + 1 :]))
    return _react(rules, operator, Operator(left, at, done, state, sealed), came)


def _react(rules: Barriers, before: Operator, after: Operator, came: int) -> Taken:
    """A task that has noted a barrier, or the end of a channel: does it copy its state, is its part finished?"""
    inputs, at, done, state, sealed = after
    due = _due(rules, at, done, came)
    if due > done:
        after = Operator(inputs, at, due, state, sealed)
    was_open = due > done or min(before.at) < done
    acked = after.done if was_open and (not rules.at_first or min(at) >= after.done) else 0
    sent = bytes((BARRIER + due,)) if due > done else b""
    return Taken(after, sent + END if min(at) == ENDED else sent, after.done if due > done else 0, acked)


def _due(rules: Barriers, at: bytes, done: int, came: int) -> int:
    """The checkpoint for which the state is to be copied now; none where it is not newer than the last."""
    if rules.at_first:
        return 0 if came == ENDED else came
    waiting = live(at)
    if not waiting:
        return 0
    if rules.aligns:
        newest = max(waiting)
        return newest if min(waiting) == newest else 0
    return min(waiting)
