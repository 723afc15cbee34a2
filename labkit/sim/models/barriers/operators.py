"""What one task does with the next item of a channel: count a record, react to a barrier, come to its end.

Every rule is a function of that task alone, so that a search can remember its result: there are few states of one
task and very many of the job. The coordinator and the other tasks learn of it by what a `TaskStep` sayss.
"""

from typing import NamedTuple

from labkit.sim.models.barriers.parts import BARRIER, END, ENDED, Operator, live, once
from labkit.sim.models.barriers.settings import Rules


class TaskStep(NamedTuple):
    """A task after an item, and what others learn of it.

    `sent` goes to the task's output, and `sealed` are the rows of the transaction that the sink has closed. The rest
    concerns the coordinator, by the id of a checkpoint, 0 for none: `copied` if the task has just copied its state for
    it, `whole` if no part of the task's share is missing any more, `logged` if the record belongs to the channel
    state. `ended` says that all inputs have; `reports` that there is any of the three ids.
    """

    operator: Operator
    sent: bytes = b""
    sealed: int = 0
    copied: int = 0
    whole: int = 0
    logged: int = 0
    ended: bool = False
    reports: bool = False


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


def is_blocked(rules: Rules, operator: Operator, channel: int) -> bool:
    """Whether a channel waits for the barriers of the others."""
    _, at, done, _, _ = operator
    return rules.blocks and done < at[channel] < ENDED and at[channel] == max(live(at))


def take(rules: Rules, operator: Operator, channel: int, *, is_sink: bool) -> TaskStep:
    """The task after the next item of a channel."""
    inputs, at, done, state, sealed = operator
    item = inputs[channel][0]
    left = (*inputs[:channel], inputs[channel][1:], *inputs[channel + 1 :])
    if item < BARRIER:
        logged = done if rules.saves and at[channel] < done else 0
        after = Operator(left, at, done, state + once(item), sealed)
        return TaskStep(after, bytes((item,)), logged=logged, reports=bool(logged))
    came = item if item == ENDED else item - BARRIER
    at = bytes((*at[:channel], came, *at[channel + 1 :]))
    due, ended = _due(rules, at, came), min(at) == ENDED
    was_open = min(operator.at) < done
    if due > done:
        return _copied(rules, Operator(left, at, done, state, sealed), due, is_sink=is_sink)
    whole = done if was_open and min(at) >= done else 0
    return TaskStep(Operator(left, at, done, state, sealed), END * ended, whole=whole, ended=ended, reports=bool(whole))


def _copied(rules: Rules, operator: Operator, due: int, *, is_sink: bool) -> TaskStep:
    """A task copies its state and passes the barrier on; the sink closes its transaction."""
    ended = min(operator.at) == ENDED
    whole = due if not rules.at_first or min(operator.at) >= due else 0
    after, rows = copy(operator, due, is_sink=is_sink)
    return TaskStep(after, bytes((BARRIER + due,)) + END * ended, rows, due, whole, ended=ended, reports=True)


def copy(operator: Operator, due: int, *, is_sink: bool) -> tuple[Operator, int]:
    """The task after it has copied its state for a checkpoint, and the rows of the transaction that a sink closes."""
    inputs, at, _, state, sealed = operator
    return Operator(inputs, at, due, state, state if is_sink else 0), state - sealed if is_sink else 0


def _due(rules: Rules, at: bytes, came: int) -> int:
    """The checkpoint for which the state is to be copied now, unless that has been done; 0 for none."""
    if rules.at_first:
        return 0 if came == ENDED else came
    waiting = live(at)
    if not waiting:
        return 0
    if rules.aligns:
        newest = max(waiting)
        return newest if min(waiting) == newest else 0
    return min(waiting)
