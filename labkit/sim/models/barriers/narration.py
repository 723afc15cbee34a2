"""The barriers model in words: a state in one line, an action in one sentence. Nothing here decides anything."""

from collections.abc import Iterable

from labkit.sim.model import Action
from labkit.sim.models.barriers.parts import (
    BARRIER,
    ENDED,
    MISSING,
    Checkpoint,
    Operator,
    State,
    records_in,
)
from labkit.sim.models.barriers.settings import Settings

SENTENCES = {
    "trigger": "The coordinator triggers a checkpoint: every source is asked for a barrier.",
    "copy": "No barrier: the coordinator copies every state at once, with the offsets after the sink's last rows.",
    "complete": "The coordinator has every part of checkpoint {which} and stores it: the decision.",
    "expire": "Checkpoint {which} takes too long; the coordinator gives it up, and the job goes on.",
    "store": "The copy of {task} is stored and acknowledged.",
    "announce": "The sink is told which checkpoint is complete, and commits everything up to it.",
    "read": "{task} reads the next record of its log and sends it to the count of its word.",
    "inject": "{task} notes its offset for the checkpoint and puts the barrier into its channels.",
    "finish": "{task} has read its whole log and says so on every channel.",
    "process": "{receiver} takes a record from {sender}.",
    "take_barrier": "{receiver} takes a barrier from {sender}.",
    "take_end": "{receiver} learns that nothing more comes from {sender}.",
    "crash": "The job dies: the memory of all tasks is gone, channels included, and so is every pending checkpoint.",
    "cancel": "Somebody cancels the job.",
    "restore": "The job starts from the latest complete checkpoint, or from nothing; its sources read on from there.",
}

_OF_CHANNEL = ("process", "take_barrier", "take_end")


def sentence(settings: Settings, action: Action) -> str:
    """What happens."""
    name, which = action
    receiver = sender = task = ""
    if name in _OF_CHANNEL:
        reader, into = settings.channels[which]
        receiver = settings.task(settings.sources + reader)
        sender = settings.task(
            into if reader < settings.counts else settings.sources + into
        )
    elif which >= 0:
        task = settings.task(which)
        if name == "inject" and which == settings.tasks - 1:
            return "The sink copies its state: its inputs have ended, so that the coordinator has to ask it itself."
    said = SENTENCES[name].format(
        which=which, task=task, receiver=receiver, sender=sender
    )
    return said[0].upper() + said[1:]


def text(settings: Settings, state: State) -> str:
    """The coordinator, every task with what waits in its channels, and what outsiders see."""
    coordinator, sources, operators, visible, prepared, faults = state
    parts = [f"{coordinator.triggered} triggered"]
    parts += [
        f"complete {_checkpoint(settings, checkpoint)}"
        for checkpoint in coordinator.completed
    ]
    parts += [
        f"pending {_checkpoint(settings, checkpoint)}"
        for checkpoint in coordinator.pending
    ]
    if coordinator.pause:
        parts.append(f"no trigger for {coordinator.pause} steps")
    if coordinator.running:
        parts += [
            f"source {which} at offset {position} after barrier {epoch}{', ended' * ended}"
            for which, (position, epoch, ended) in enumerate(sources)
        ]
        parts += [
            _operator(settings, which, operator)
            for which, operator in enumerate(operators)
        ]
    else:
        parts.append("job down")
    parts.append(f"visible {_held(settings, visible)}")
    parts += [
        f"sealed for {number} {_held(settings, rows)}" for number, rows in prepared
    ]
    left = [
        f"{count} {name}"
        for name, count in zip(faults._fields, faults, strict=True)
        if count
    ]
    return f"{'; '.join(parts)}; to come {_all(left)}."


def _checkpoint(settings: Settings, checkpoint: Checkpoint) -> str:
    number, taken, acked, offsets, states, flight = checkpoint
    said = [
        f"offset {which}:{'?' if offset == MISSING else offset}"
        for which, offset in enumerate(offsets)
    ]
    said += [
        f"{settings.task(which)} {'?' if state == MISSING else _held(settings, state)}"
        for which, state in enumerate(states, settings.sources)
    ]
    said += [
        f"in flight in channel {channel} {_queue(queue)}"
        for channel, queue in enumerate(flight)
        if queue
    ]
    everyone = (1 << settings.tasks) - 1
    if taken != everyone:
        said.append(f"parts of {_tasks(settings, taken)}")
    if acked != everyone:
        said.append(f"acknowledged by {_tasks(settings, acked)}")
    return f"{number} ({', '.join(said)})"


def _tasks(settings: Settings, bits: int) -> str:
    return (
        " and ".join(
            settings.task(which) for which in range(settings.tasks) if bits >> which & 1
        )
        or "nobody"
    )


def _operator(settings: Settings, which: int, operator: Operator) -> str:
    inputs, at, done, state, sealed = operator
    said = f"{settings.task(settings.sources + which)} {_held(settings, state)}, copied for {done}"
    for into, (came, queue) in enumerate(zip(at, inputs, strict=True)):
        sender = settings.task(
            into if which < settings.counts else settings.sources + into
        )
        said += f", from {sender} {'the end' if came == ENDED else f'barrier {came}'} then {_queue(queue)}"
    return said + (
        f", sealed {_held(settings, sealed)}" if which == settings.counts else ""
    )


def _held(settings: Settings, held: int) -> str:
    """Records by their place in the input, and the counts of their words."""
    return f"{settings.totals(held)} [{_all(map(str, records_in(held)))}]"


def _queue(queue: bytes) -> str:
    return _all(
        "END"
        if item == ENDED
        else f"B{item - BARRIER}"
        if item >= BARRIER
        else str(item)
        for item in queue
    )


def _all(words: Iterable[str]) -> str:
    return " ".join(words) or "-"
