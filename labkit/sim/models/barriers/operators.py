"""The effects of steps: of tasks that take a record, a barrier or the end of the input, and of the coordinator.

Every function depends only on the state of one task, or only on that of the coordinator. So a search can cache the
function's results, because one task has few states, whereas the whole job has very many.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from labkit.sim.models.barriers.state import (
    BARRIER,
    DIGIT,
    END,
    ENDED,
    MISSING,
    Checkpoint,
    Coordinator,
    Faults,
    Operator,
    Prepared,
    Rules,
    Settings,
    Source,
    State,
    live,
    once,
)


class TaskStep(NamedTuple):
    """The result of a step in which a task takes one item from a channel: its new state, and effects on other tasks."""

    operator: Operator
    sent: bytes = b""
    """The items that the task sends on."""
    sealed: int = 0
    """The rows that the sink has closed in a transaction: a multiset whose octal digit r counts record r; else 0."""
    copied: int = 0
    """The id of the checkpoint for which the task has just copied its state; 0 for none."""
    whole: int = 0
    """The id of the checkpoint to which the task has now contributed everything; 0 for none."""
    logged: int = 0
    """The id of the checkpoint that saves the record as in flight; 0 for none."""
    ended: bool = False
    """Whether all inputs of the task have ended."""


def arrive(operator: Operator, channel: int, items: bytes) -> Operator:
    """Return the task's state after these items have arrived in one of its channels."""
    inputs, at, done, state, sealed = operator
    return Operator((*inputs[:channel], inputs[channel] + items, *inputs[channel + 1 :]), at, done, state, sealed)


def overtake(operator: Operator, channel: int, item: bytes) -> tuple[Operator, bytes]:
    """Let a barrier overtake all records in a task's channel; return the task's new state, and these records.

    `operator` is the task's old state, `channel` the index of the channel among the task's inputs, and `item` the
    barrier.
    """
    inputs, at, done, state, sealed = operator
    records = inputs[channel].lstrip(bytes(range(BARRIER, ENDED)))
    queue = inputs[channel].removesuffix(records) + item + records
    return Operator((*inputs[:channel], queue, *inputs[channel + 1 :]), at, done, state, sealed), records


def is_blocked(rules: Rules, operator: Operator, channel: int) -> bool:
    """Return whether a task must not read a channel for now.

    If the rules block channels (`Rules.blocks`), the task must not read a channel in which a barrier has arrived, until
    the barrier has arrived in all other channels that the task reads.
    """
    _, at, done, _, _ = operator
    return rules.blocks and done < at[channel] < ENDED and at[channel] == max(live(at))


def take(rules: Rules, operator: Operator, channel: int, *, is_sink: bool) -> TaskStep:
    """Let a task take the next item of a channel; return the task's new state and the effects on other tasks."""
    inputs, at, done, state, sealed = operator
    item = inputs[channel][0]
    left = (*inputs[:channel], inputs[channel][1:], *inputs[channel + 1 :])
    if item < BARRIER:
        logged = done if rules.saves and at[channel] < done else 0
        after = Operator(left, at, done, state + once(item), sealed)
        return TaskStep(after, bytes((item,)), logged=logged)
    barrier = item if item == ENDED else item - BARRIER
    at = bytes((*at[:channel], barrier, *at[channel + 1 :]))
    due, ended = _due(rules, at, barrier), min(at) == ENDED
    was_open = min(operator.at) < done
    if due > done:
        return _copied(rules, Operator(left, at, done, state, sealed), due, is_sink=is_sink)
    whole = done if was_open and min(at) >= done else 0
    return TaskStep(Operator(left, at, done, state, sealed), END * ended, whole=whole, ended=ended)


def _copied(rules: Rules, operator: Operator, due: int, *, is_sink: bool) -> TaskStep:
    ended = min(operator.at) == ENDED
    whole = due if not rules.at_first or min(operator.at) >= due else 0
    after, rows = copy(operator, due, is_sink=is_sink)
    return TaskStep(after, bytes((BARRIER + due,)) + END * ended, rows, due, whole, ended=ended)


def copy(operator: Operator, due: int, *, is_sink: bool) -> tuple[Operator, int]:
    """Let a task copy its state for checkpoint `due`; return the task, and the rows that this checkpoint will commit.

    The rows are a multiset, which is empty (0) for all tasks but the sink.
    """
    inputs, at, _, state, sealed = operator
    return Operator(inputs, at, due, state, state if is_sink else 0), state - sealed if is_sink else 0


def _due(rules: Rules, at: bytes, barrier: int) -> int:
    if rules.at_first:
        return 0 if barrier == ENDED else barrier
    waiting = live(at)
    if not waiting:
        return 0
    if rules.aligns:
        newest = max(waiting)
        return newest if min(waiting) == newest else 0
    return min(waiting)


def decided(kept: tuple[Checkpoint, ...]) -> int:
    """Return the id of the latest of these complete checkpoints, or 0 if there are none."""
    return kept[-1].id if kept else 0


def opened(settings: Settings, number: int, sources: Sequence[Source], operators: Sequence[Operator]) -> Checkpoint:
    """Return the new checkpoint `number`, which so far has only the last states of the tasks that have ended."""
    flight = (b"",) * len(settings.channels) if settings.rules.saves else ()
    if not any(source.ended for source in sources):
        return Checkpoint(number, 0, 0, (MISSING,) * len(sources), (MISSING,) * len(operators), flight)
    offsets = tuple(source.position if source.ended else MISSING for source in sources)
    ended = [min(operator.at) == ENDED for operator in operators]
    if settings.transactional:
        ended[-1] = False
    states = tuple(
        operator.state if has_ended else MISSING for operator, has_ended in zip(operators, ended, strict=True)
    )
    have = sum((held != MISSING) << task for task, held in enumerate((*offsets, *states)))
    return Checkpoint(number, have, have, offsets, states, flight)


# The following functions depend on the coordinator alone, so that a search can cache their results.


def with_checkpoint(coordinator: Coordinator, checkpoint: Checkpoint) -> Coordinator:
    """Return the coordinator's state after it has triggered a checkpoint."""
    triggered, completed, running, pending, pause = coordinator
    return Coordinator(triggered + 1, completed, running, (*pending, checkpoint), pause)


def with_pending(coordinator: Coordinator, pending: Iterable[Checkpoint]) -> Coordinator:
    """Return the coordinator's state with `pending` as its incomplete checkpoints."""
    triggered, completed, running, _, pause = coordinator
    return Coordinator(triggered, completed, running, tuple(pending), pause)


def _changed(coordinator: Coordinator, number: int, change: Callable[[Checkpoint], Checkpoint]) -> Coordinator:
    pending = coordinator.pending
    return with_pending(coordinator, (change(each) if each.id == number else each for each in pending))


def noted(coordinator: Coordinator, number: int, task: int, part: int) -> Coordinator:
    """Return the coordinator after checkpoint `number` has received `part`, which is a task's offset or state."""

    def change(checkpoint: Checkpoint) -> Checkpoint:
        sources = len(checkpoint.offsets)
        parts = list(checkpoint.offsets + checkpoint.states)
        parts[task] = part
        return checkpoint._replace(offsets=tuple(parts[:sources]), states=tuple(parts[sources:]))

    return _changed(coordinator, number, change)


def finished(
    coordinator: Coordinator,
    number: int,
    task: int,
    is_stored: bool,  # noqa: FBT001  # tasks cache this function by its positional arguments
) -> Coordinator:
    """Return the coordinator after `task` has made its part of checkpoint `number`, such as a copy of its state.

    With `is_stored`, the part is also stored, and the task has acknowledged the checkpoint.
    """

    def change(checkpoint: Checkpoint) -> Checkpoint:
        acked = checkpoint.acked | is_stored << task
        return checkpoint._replace(taken=checkpoint.taken | 1 << task, acked=acked)

    return _changed(coordinator, number, change)


def excused(coordinator: Coordinator, since: int, task: int, part: int) -> Coordinator:
    """Return the coordinator after a task has ended, so that pending checkpoints need not wait for this task.

    The task's last state, `part`, counts as acknowledged for all pending checkpoints with ids above `since`.
    """
    for checkpoint in coordinator.pending:
        if checkpoint.id > since:
            coordinator = finished(noted(coordinator, checkpoint.id, task, part), checkpoint.id, task, is_stored=True)
    return coordinator


def logged(coordinator: Coordinator, number: int, channel: int, records: bytes) -> Coordinator:
    """Return the coordinator's state after a checkpoint has received in-flight records of a channel."""

    def change(checkpoint: Checkpoint) -> Checkpoint:
        flight = list(checkpoint.flight)
        flight[channel] += records
        return checkpoint._replace(flight=tuple(flight))

    return _changed(coordinator, number, change)


def completed(settings: Settings, coordinator: Coordinator, number: int) -> Coordinator:
    """Return the coordinator's state after it has stored checkpoint `number` as complete and dropped older ones."""
    triggered, kept, running, pending, _ = coordinator
    [whole] = [checkpoint for checkpoint in pending if checkpoint.id == number]
    kept = (*kept, stored(whole))[-settings.retained :]
    left = tuple(checkpoint for checkpoint in pending if checkpoint.id > number)
    return Coordinator(triggered, kept, running, left, settings.min_pause)


def stored(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint in its stored form, without the states of tasks that have not acknowledged it."""
    number, taken, acked, offsets, states, flight = checkpoint
    held = [part if acked >> task & 1 else MISSING for task, part in enumerate((*offsets, *states))]
    return Checkpoint(number, taken, acked, tuple(held[: len(offsets)]), tuple(held[len(offsets) :]), flight)


def copied_now(settings: Settings, number: int, operators: Sequence[Operator]) -> Checkpoint:
    """Return a checkpoint that copies all task states at one moment, without barriers.

    For each source, the checkpoint's offset is the position after the last row from this source that the sink has. This
    is wrong on purpose.
    """
    everyone, held = (1 << settings.tasks) - 1, operators[-1].state
    last = [
        max(
            (record for record in range(source, len(settings.words), settings.sources) if held >> DIGIT * record & 7),
            default=-1,
        )
        for source in range(settings.sources)
    ]
    offsets = tuple(record // settings.sources + 1 if record >= 0 else 0 for record in last)
    return Checkpoint(number, everyone, everyone, offsets, tuple(operator.state for operator in operators))


def committed(visible: int, prepared: Prepared, number: int) -> tuple[int, Prepared]:
    """Commit all transactions of checkpoints up to `number`; return the visible rows and the transactions left."""
    return (
        visible + sum(rows for sealed, rows in prepared if sealed <= number),
        tuple(transaction for transaction in prepared if transaction[0] > number),
    )


def restored(
    settings: Settings, coordinator: Coordinator, loaded: Checkpoint | None, visible: int, faults: Faults
) -> State:
    """Return the state of a job that starts from the checkpoint `loaded`, or from the beginning if `loaded` is None.

    `visible` are the rows that readers see, and `faults` the faults that may still happen. The job's channels contain
    the records that were in flight in the checkpoint, and its sources read from the checkpoint's offsets.
    """
    number = loaded.id if loaded else 0
    offsets = loaded.offsets if loaded else (0,) * settings.sources
    states = loaded.states if loaded else (0,) * (settings.counts + 1)
    flight = iter(loaded.flight if loaded and loaded.flight else (b"",) * len(settings.channels))
    widths = (*(settings.sources,) * settings.counts, settings.counts)
    operators = tuple(
        Operator(tuple(next(flight) for _ in range(width)), bytes((number,)) * width, number, max(held, 0))
        for width, held in zip(widths, states, strict=True)
    )
    inputs, at, done, held, _ = operators[-1]
    return State(
        Coordinator(coordinator.triggered, coordinator.completed, running=True),
        tuple(Source(max(offset, 0), number) for offset in offsets),
        (*operators[:-1], Operator(inputs, at, done, held, held)),
        visible,
        (),
        faults,
    )
