"""Delivery in words: a state in one line, an action in one sentence. Nothing here decides anything."""

from collections.abc import Iterable

from labkit.sim.model import Action
from labkit.sim.models.delivery.parts import Faults, Hop, Message, Process, State
from labkit.sim.models.delivery.settings import Settings

SENTENCES = {  # but for `store`, which means different things
    "send": "Process {which} sends the oldest record of which nothing is under way.",
    "send_early": "The timeout of process {which} comes although nothing was lost: it sends a second time.",
    "hear": "Process {which} reads an acknowledgement.",
    "receive": "Process {which} takes a record from its channel and works on it in memory.",
    "discard": "Process {which} knows the id of the next record, drops it and acknowledges it again.",
    "produce": "Process {which} keeps what came of the record in memory, to send it on, and waits.",
    "note": "Process {which} notes the id of its record.",
    "ack": "Process {which} acknowledges its record.",
    "collect": "Process {which} forgets ids.",
    "crash": "Process {which} dies; what it had in memory is gone.",
    "restart": "Process {which} starts again with what is durable.",
    "drop": "The next record to process {which} is lost.",
    "drop_ack": "The next acknowledgement to process {which} is lost.",
    "duplicate": "The next record to process {which} is there a second time.",
    "reorder": "A record to process {which} overtakes the one before it.",
}


def sentence(settings: Settings, action: Action) -> str:
    """What happens."""
    return _meaning(settings, action).format(which=action.which)


def _meaning(settings: Settings, action: Action) -> str:
    name = action.name
    if name == "store":
        what = "What came of the record of process {which} is out"
        what = (
            what
            if action.which == settings.last
            else "Process {which} makes what came of the record durable"
        )
        return f"{what}, {_with_its_id(settings)}."
    if name == "discard" and not settings.retry:
        return "Process {which} knows the id of the next record and drops it."
    if name == "receive" and settings.broken == "ack_early":
        return "Process {which} takes a record from its channel, acknowledges it at once, and works on it in memory."
    if name == "receive" and settings.broken == "note_early":
        return "Process {which} takes a record from its channel, notes its id at once, and works on it in memory."
    if name == "crash" and settings.dedup == "connection":
        return "Process {which} dies: its memory is gone, and so are its connections with what they carried."
    return SENTENCES[name]


def _with_its_id(settings: Settings) -> str:
    if settings.broken in ("note_late", "note_early"):
        return (
            "and its id is not noted yet"
            if settings.broken == "note_late"
            else "and its id was noted before"
        )
    return {
        "durable": "together with its id",
        "volatile": "and its id is noted in memory",
    }.get(settings.dedup, "and no id is kept")


def text(state: State) -> str:
    """Processes, what is under way, what came out, and what may still go wrong."""
    processes, hops, out, made, faults = state
    parts = [_process(number, process) for number, process in enumerate(processes)]
    parts += [
        _hop(number, hop) for number, hop in enumerate(hops, start=1) if hop != Hop()
    ]
    parts.append(
        f"out {_all(f'{record}/{crashes}' for record, crashes in out)}"
        + f", {made} made" * bool(made)
    )
    left = [
        f"{count} {name}"
        for name, count in zip(Faults._fields, faults, strict=True)
        if count
    ]
    return "; ".join([*parts, f"to come {_all(left, ', ')}"]) + "."


def _process(number: int, process: Process) -> str:
    outbox, seen, memory, stage, held, output = process
    said = f"process {number} {stage}"
    said += f" {_message(held)}" if held is not None else ""
    said += f" for {_message(output)}" if output is not None else ""
    said += f", to bring {_all(map(_message, outbox))}" if outbox else ""
    said += f", ids {_ids(seen)}" if seen else ""
    return said + (f", ids in memory {_ids(memory)}" if memory else "")


def _hop(number: int, hop: Hop) -> str:
    said = f"to {number}: {_all(map(_message, hop.forward))}"
    said += f", acknowledged {_all(map(str, hop.back))}" if hop.back else ""
    return said + (f", known {_ids(hop.known)}" if hop.known else "")


def _message(message: Message) -> str:
    """The record, with its id where it is another number."""
    return str(message.record) + (
        f"#{message.name}" if message.name != message.record else ""
    )


def _ids(bits: int) -> str:
    return _all(str(name) for name in range(bits.bit_length()) if bits >> name & 1)


def _all(words: Iterable[str], between: str = " ") -> str:
    return between.join(words) or "-"
