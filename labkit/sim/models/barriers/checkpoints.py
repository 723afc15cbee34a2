"""What is written into a checkpoint while it is pending, and what a restart reads from a complete one.

This module must not decide when anything happens: see `schedule` and `model`.
"""

from collections.abc import Callable, Iterable, Sequence

from labkit.sim.models.barriers.parts import (
    DIGIT,
    ENDED,
    MISSING,
    Checkpoint,
    Coordinator,
    Faults,
    Operator,
    Prepared,
    Source,
    State,
)
from labkit.sim.models.barriers.settings import Settings


def decided(kept: tuple[Checkpoint, ...]) -> int:
    """The id of the latest complete checkpoint, 0 without one."""
    return kept[-1].id if kept else 0


def opened(settings: Settings, number: int, sources: Sequence[Source], operators: Sequence[Operator]) -> Checkpoint:
    """A new checkpoint: of tasks that have ended it holds the last state, the others have to send theirs."""
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


# What happens to the coordinator: each a function of it alone, so that a search can remember its result.


def with_checkpoint(coordinator: Coordinator, checkpoint: Checkpoint) -> Coordinator:
    """The coordinator after it has triggered a checkpoint."""
    triggered, completed, running, pending, pause = coordinator
    return Coordinator(triggered + 1, completed, running, (*pending, checkpoint), pause)


def with_pending(coordinator: Coordinator, pending: Iterable[Checkpoint]) -> Coordinator:
    """The coordinator with other pending checkpoints."""
    triggered, completed, running, _, pause = coordinator
    return Coordinator(triggered, completed, running, tuple(pending), pause)


def _changed(coordinator: Coordinator, number: int, change: Callable[[Checkpoint], Checkpoint]) -> Coordinator:
    """The coordinator with one checkpoint changed, if that is still wanted."""
    pending = coordinator.pending
    return with_pending(coordinator, (change(each) if each.id == number else each for each in pending))


def noted(coordinator: Coordinator, number: int, task: int, held: int) -> Coordinator:
    """A task's offset or state goes into a checkpoint."""

    def change(checkpoint: Checkpoint) -> Checkpoint:
        sources = len(checkpoint.offsets)
        parts = list(checkpoint.offsets + checkpoint.states)
        parts[task] = held
        return checkpoint._replace(offsets=tuple(parts[:sources]), states=tuple(parts[sources:]))

    return _changed(coordinator, number, change)


def finished(
    coordinator: Coordinator,
    number: int,
    task: int,
    is_stored: bool,  # noqa: FBT001  # tasks cache this function by its positional arguments
) -> Coordinator:
    """A task's part of a checkpoint is whole, and perhaps also stored and acknowledged."""

    def change(checkpoint: Checkpoint) -> Checkpoint:
        acked = checkpoint.acked | is_stored << task
        return checkpoint._replace(taken=checkpoint.taken | 1 << task, acked=acked)

    return _changed(coordinator, number, change)


def excused(coordinator: Coordinator, since: int, task: int, held: int) -> Coordinator:
    """A task that has ended need not acknowledge the checkpoints that it has not seen: they get its last state."""
    for checkpoint in coordinator.pending:
        if checkpoint.id > since:
            coordinator = finished(noted(coordinator, checkpoint.id, task, held), checkpoint.id, task, is_stored=True)
    return coordinator


def logged(coordinator: Coordinator, number: int, channel: int, records: bytes) -> Coordinator:
    """Records that were in flight go into a checkpoint."""

    def change(checkpoint: Checkpoint) -> Checkpoint:
        flight = list(checkpoint.flight)
        flight[channel] += records
        return checkpoint._replace(flight=tuple(flight))

    return _changed(coordinator, number, change)


def completed(settings: Settings, coordinator: Coordinator, number: int) -> Coordinator:
    """A checkpoint is stored: the decision. Older ones that are pending are subsumed."""
    triggered, kept, running, pending, _ = coordinator
    [whole] = [checkpoint for checkpoint in pending if checkpoint.id == number]
    kept = (*kept, stored(whole))[-settings.retained :]
    left = tuple(checkpoint for checkpoint in pending if checkpoint.id > number)
    return Coordinator(triggered, kept, running, left, settings.min_pause)


def stored(checkpoint: Checkpoint) -> Checkpoint:
    """A checkpoint as it is stored: without the part of anybody who has not acknowledged it."""
    number, taken, acked, offsets, states, flight = checkpoint
    held = [part if acked >> task & 1 else MISSING for task, part in enumerate((*offsets, *states))]
    return Checkpoint(number, taken, acked, tuple(held[: len(offsets)]), tuple(held[len(offsets) :]), flight)


def copied_now(settings: Settings, number: int, operators: Sequence[Operator]) -> Checkpoint:
    """All states at one moment, with the offsets after the last rows that the sink has put out; no barrier."""
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
