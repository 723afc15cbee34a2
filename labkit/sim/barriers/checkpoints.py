"""What is written into a checkpoint while it is pending, and what a restart reads from a complete one.

This module must not decide when anything happens: see `schedule` and `model`.
"""

from labkit.sim.barriers.parts import (
    DIGIT,
    END,
    ENDED,
    MISSING,
    Checkpoint,
    Coordinator,
    Faults,
    Operator,
    Prepared,
    Source,
    State,
    once,
)
from labkit.sim.barriers.settings import Settings

Pending = tuple[Checkpoint, ...]


def decided(completed: tuple[Checkpoint, ...]) -> int:
    """The id of the latest complete checkpoint, 0 without one."""
    return completed[-1].id if completed else 0


def opened(settings: Settings, number: int, state: State) -> Checkpoint:
    """A new checkpoint: of tasks that have ended it holds the last state, the others have to send theirs."""
    offsets = tuple(source.position if source.ended else MISSING for source in state.sources)
    ended = [min(operator.at) == ENDED for operator in state.operators]
    if settings.transactional:
        ended[-1] = False
    states = tuple(
        operator.state if has_ended else MISSING for operator, has_ended in zip(state.operators, ended, strict=True)
    )
    have = sum((held != MISSING) << task for task, held in enumerate((*offsets, *states)))
    flight = (b"",) * len(settings.channels) if settings.barriers.saves else ()
    return Checkpoint(number, have, have, offsets, states, flight)


def noted(pending: Pending, number: int, task: int, held: int) -> Pending:
    """A task's offset or state goes into a checkpoint, if that is still wanted."""
    return tuple(_noted(checkpoint, task, held) if checkpoint.id == number else checkpoint for checkpoint in pending)


def _noted(checkpoint: Checkpoint, task: int, held: int) -> Checkpoint:
    number, taken, acked, offsets, states, flight = checkpoint
    sources = len(offsets)
    if task < sources:
        offsets = (*offsets[:task], held, *offsets[task + 1 :])
    else:
        states = (*states[: task - sources], held, *states[task - sources + 1 :])
    return Checkpoint(number, taken, acked, offsets, states, flight)


def finished(pending: Pending, number: int, task: int, *, stored: bool) -> Pending:
    """A task's part of a checkpoint is whole, and perhaps also stored and acknowledged."""
    bit = 1 << task
    return tuple(
        checkpoint._replace(taken=checkpoint.taken | bit, acked=checkpoint.acked | bit * stored)
        if checkpoint.id == number
        else checkpoint
        for checkpoint in pending
    )


def logged(pending: Pending, number: int, channel: int, records: bytes) -> Pending:
    """Records that were in flight go into a checkpoint, if that is still wanted."""
    return tuple(
        checkpoint._replace(
            flight=(*checkpoint.flight[:channel], checkpoint.flight[channel] + records, *checkpoint.flight[channel + 1 :])
        )
        if checkpoint.id == number
        else checkpoint
        for checkpoint in pending
    )


def stored(checkpoint: Checkpoint) -> Checkpoint:
    """A checkpoint as it is stored: without the part of anybody who has not acknowledged it."""
    number, taken, acked, offsets, states, flight = checkpoint
    held = [part if acked >> task & 1 else MISSING for task, part in enumerate((*offsets, *states))]
    return Checkpoint(number, taken, acked, tuple(held[: len(offsets)]), tuple(held[len(offsets) :]), flight)


def copied_now(settings: Settings, number: int, state: State) -> Checkpoint:
    """All states at one moment, with the offsets after the last rows that the sink has put out; no barrier."""
    everyone, held = (1 << settings.tasks) - 1, state.operators[-1].state
    last = [
        max((record for record in range(source, len(settings.words), settings.sources) if held >> DIGIT * record & 7), default=-1)
        for source in range(settings.sources)
    ]
    offsets = tuple(record // settings.sources + 1 if record >= 0 else 0 for record in last)
    return Checkpoint(number, everyone, everyone, offsets, tuple(operator.state for operator in state.operators))


def committed(visible: int, prepared: Prepared, number: int) -> tuple[int, Prepared]:
    """What outsiders see after everything up to a checkpoint is committed, and what is left."""
    return (
        visible + sum(rows for sealed, rows in prepared if sealed <= number),
        tuple(transaction for transaction in prepared if transaction[0] > number),
    )


def restored(
    settings: Settings, coordinator: Coordinator, loaded: Checkpoint | None, visible: int, faults: Faults
) -> State:
    """A job that starts from a checkpoint, or from nothing. What was in flight comes first; sources read on."""
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
