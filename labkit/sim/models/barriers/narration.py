"""The barriers model in words: a state in one line. Nothing here decides anything."""

from labkit.sim.models.barriers.parts import BARRIER, ENDED, MISSING, Checkpoint, Operator, State, records_in
from labkit.sim.models.barriers.settings import Settings
from labkit.sim.wording import listed, to_come


def text(settings: Settings, state: State) -> str:
    """The coordinator, every task with what waits in its channels, and what outsiders see."""
    coordinator, sources, operators, visible, prepared, faults = state
    parts = [f"{coordinator.triggered} triggered"]
    parts += [f"complete {_checkpoint(settings, checkpoint)}" for checkpoint in coordinator.completed]
    parts += [f"pending {_checkpoint(settings, checkpoint)}" for checkpoint in coordinator.pending]
    if coordinator.pause:
        parts.append(f"no trigger for {coordinator.pause} steps")
    if coordinator.running:
        parts += [
            f"source {which} at offset {position} after barrier {epoch}{', ended' * ended}"
            for which, (position, epoch, ended) in enumerate(sources)
        ]
        parts += [_operator(settings, which, operator) for which, operator in enumerate(operators)]
    else:
        parts.append("job down")
    parts.append(f"visible {_held(settings, visible)}")
    parts += [f"sealed for {number} {_held(settings, rows)}" for number, rows in prepared]
    left = to_come(faults._fields, faults)
    return f"{'; '.join(parts)}; to come {listed(left)}."


def _checkpoint(settings: Settings, checkpoint: Checkpoint) -> str:
    number, taken, acked, offsets, states, flight = checkpoint
    parts = [f"offset {which}:{'?' if offset == MISSING else offset}" for which, offset in enumerate(offsets)]
    parts += [
        f"{settings.task(which)} {'?' if state == MISSING else _held(settings, state)}"
        for which, state in enumerate(states, settings.sources)
    ]
    parts += [f"in flight in channel {channel} {_queue(queue)}" for channel, queue in enumerate(flight) if queue]
    everyone = (1 << settings.tasks) - 1
    if taken != everyone:
        parts.append(f"parts of {_tasks(settings, taken)}")
    if acked != everyone:
        parts.append(f"acknowledged by {_tasks(settings, acked)}")
    return f"{number} ({', '.join(parts)})"


def _tasks(settings: Settings, bits: int) -> str:
    return " and ".join(settings.task(which) for which in range(settings.tasks) if bits >> which & 1) or "nobody"


def _operator(settings: Settings, which: int, operator: Operator) -> str:
    inputs, at, done, state, sealed = operator
    sentence = f"{settings.task(settings.sources + which)} {_held(settings, state)}, copied for {done}"
    for into, (came, queue) in enumerate(zip(at, inputs, strict=True)):
        sender = settings.task(into if which < settings.counts else settings.sources + into)
        sentence += f", from {sender} {'the end' if came == ENDED else f'barrier {came}'} then {_queue(queue)}"
    return sentence + (f", sealed {_held(settings, sealed)}" if which == settings.counts else "")


def _held(settings: Settings, held: int) -> str:
    """Records by their place in the input, and the counts of their words."""
    return f"{settings.totals(held)} [{listed(map(str, records_in(held)))}]"


def _queue(queue: bytes) -> str:
    return listed("END" if item == ENDED else f"B{item - BARRIER}" if item >= BARRIER else str(item) for item in queue)
