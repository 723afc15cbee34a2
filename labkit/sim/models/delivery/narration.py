"""Delivery in words: a state in one line, an action in one sentence. Nothing here decides anything."""

from labkit.sim.model import Action
from labkit.sim.models.delivery.parts import Faults, Hop, Message, Process, State
from labkit.sim.models.delivery.settings import Settings
from labkit.sim.wording import listed, members, to_come


def variant(settings: Settings, action: Action) -> str:
    """What an action means under these settings, where that is not what its rule says; empty: it is."""
    name = action.name
    if name == "store":
        what = "What came of the record of process {which} is out"
        what = what if action.which == settings.last else "Process {which} makes what came of the record durable"
        return f"{what}, {_with_its_id(settings)}."
    if name == "discard" and not settings.retry:
        return "Process {which} knows the id of the next record and drops it."
    if name == "receive" and settings.broken == "ack_early":
        return "Process {which} takes a record from its channel, acknowledges it at once, and works on it in memory."
    if name == "receive" and settings.broken == "note_early":
        return "Process {which} takes a record from its channel, notes its id at once, and works on it in memory."
    if name == "crash" and settings.dedup == "connection":
        return "Process {which} dies: its memory is gone, and so are its connections with what they carried."
    return ""


def _with_its_id(settings: Settings) -> str:
    if settings.broken in ("note_late", "note_early"):
        return "and its id is not noted yet" if settings.broken == "note_late" else "and its id was noted before"
    return {"durable": "together with its id", "volatile": "and its id is noted in memory"}.get(
        settings.dedup, "and no id is kept"
    )


def text(state: State) -> str:
    """Processes, what is under way, what came out, and what may still go wrong."""
    processes, hops, out, productions, faults = state
    parts = [_process(number, process) for number, process in enumerate(processes)]
    parts += [_hop(number, hop) for number, hop in enumerate(hops, start=1) if hop != Hop()]
    parts.append(
        f"out {listed(f'{record}/{crashes}' for record, crashes in out)}" + f", {productions} made" * bool(productions)
    )
    left = to_come(Faults._fields, faults)
    return "; ".join([*parts, f"to come {listed(left, ', ')}"]) + "."


def _process(number: int, process: Process) -> str:
    outbox, ids, memory, stage, held, output = process
    sentence = f"process {number} {stage}"
    sentence += f" {_message(held)}" if held is not None else ""
    sentence += f" for {_message(output)}" if output is not None else ""
    sentence += f", to bring {listed(map(_message, outbox))}" if outbox else ""
    sentence += f", ids {_ids(ids)}" if ids else ""
    return sentence + (f", ids in memory {_ids(memory)}" if memory else "")


def _hop(number: int, hop: Hop) -> str:
    sentence = f"to {number}: {listed(map(_message, hop.forward))}"
    sentence += f", acknowledged {listed(map(str, hop.back))}" if hop.back else ""
    return sentence + (f", known {_ids(hop.ids)}" if hop.ids else "")


def _message(message: Message) -> str:
    """The record, with its id where it is another number."""
    return str(message.record) + (f"#{message.name}" if message.name != message.record else "")


def _ids(bits: int) -> str:
    return listed(members(bits))
