"""The properties (claims) to check in the simulator `delivery`, its texts, and counts of executions and waiting steps.

Only `labkit.core.judge` counts lost and duplicate records, as for real runs: `Judge` turns a state into a History.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter

from labkit.core.judge import ANOMALY, Witness
from labkit.core.records import History, Observation, Reading, Record
from labkit.sim.model import Action, Mood, Property, possible, unless
from labkit.sim.models.delivery.state import Faults, Hop, Message, Process, Settings, Stage, State
from labkit.sim.verdicts import StateJudge
from labkit.sim.wording import listed, members, to_come

KEY = "hello"
"""The key of every record; with one key for all, a reader sees reordered records as a value that goes back."""

SENTENCES = {
    "no_loss": "In the end no record is lost.",
    "no_duplicate": "No record comes out twice.",
    "no_regression": "No reader sees an older value of the key after a newer one.",
}
"""For each property that the judge checks here, the sentence that states it to users."""


def is_over(state: State) -> bool:
    """Return whether all processes have finished their work, and no message is in flight."""
    idle = all(process.stage is Stage.IDLE and not process.outbox for process in state.processes)
    return idle and not any(hop.forward or hop.back for hop in state.hops)


class Judge(StateJudge[State]):
    """Judges the output of the chain's last process: whether records are lost, duplicated, or out of order."""

    def __init__(self, records: int) -> None:
        super().__init__([Record(record, KEY, record + 1) for record in range(records)], attrgetter("out"))

    def history(self, state: State) -> History:
        """Return the records in the order in which they left the chain, and a complete read of them at the end.

        All rows have batch 0. A row's incarnation is 1 plus the number of crashes before the row.
        """
        rows = (Observation(*self.expected[row.record], batch=0, incarnation=row.crashes + 1) for row in state.out)
        return History([*rows, Reading("end")])


def claims(settings: Settings, judged: Judge) -> Sequence[Property[State]]:
    """Return the properties of the simulator `delivery` that a search checks.

    Some properties, such as no_loss, concern the output, which `judged` compares with the input. Others concern
    progress: the run comes to its end, also after a crash.
    """
    properties = [_judged(judged, name) for name in SENTENCES]
    if settings.retry:
        properties.append(_kept(settings.records))
    if crashes := settings.faults.crashes:
        sentence = "After a crash, the run has come to its end."
        properties.append(possible("recovers", sentence, lambda state: state.faults.crashes != crashes, is_over))
    return (
        *properties,
        judged.all_out("All records come out.", is_over),
        Property("ends", Mood.EVENTUALLY, "In the end nobody has anything left to do.", is_over, _stuck),
    )


def _judged(judged: Judge, name: str) -> Property[State]:
    """Return the property `name`, such as no_loss, which the output must have.

    The property no_loss is checked only at the end, because before that a missing record may still arrive.
    """

    def because(state: State) -> str:
        return _WITNESS_SENTENCES[name](judged.verdict(state).witnesses[ANOMALY[name]][0])

    where = is_over if name == "no_loss" else None
    return judged.claim(name, SENTENCES[name], where, because)


def _lost(case: Witness) -> str:
    return f"record {case.offset} has not come out, and nobody has anything left to do."


def _doubled(case: Witness) -> str:
    assert case.earlier is not None
    first, second = case.earlier.incarnation, case.incarnation
    assert first is not None
    assert second is not None
    return f"record {case.offset} came out after {first - 1} crashes, and once more after {second - 1}."


def _fell_back(case: Witness) -> str:
    return f"record {case.offset} came out late: readers saw {case.key!r} go from {case.from_value} to {case.to_value}."


_WITNESS_SENTENCES: dict[str, Callable[[Witness], str]] = {
    "no_loss": _lost,
    "no_duplicate": _doubled,
    "no_regression": _fell_back,
}


def _kept(records: int) -> Property[State]:
    def broken(state: State) -> str:
        safe = {row.record for row in state.out}
        for process in state.processes:
            safe.update(message.record for message in process.outbox)
        for record in range(records):
            if record not in safe:
                gone = "a crash has lost it, or can lose it."
                return f"record {record} is in no durable outbox and has not come out: {gone}"
        return ""

    sentence = "A sender deletes a record only when the record is durable elsewhere or has come out."
    return unless("kept", Mood.ALWAYS, sentence, broken)


def _stuck(state: State) -> str:
    for number, process in enumerate(state.processes):
        if process.stage is not Stage.IDLE or process.outbox:
            return f"process {number} is {process.stage} for ever, with {len(process.outbox)} records to send."
    number = next(number for number, hop in enumerate(state.hops, start=1) if hop != Hop())
    return f"a message to or from process {number} stays in flight for ever."


def executions(states: Sequence[State]) -> tuple[tuple[int, ...], ...]:
    """Return, for each process after the source, how often it handled each record."""
    records = 1 + max((message.record for message in states[0].processes[0].outbox), default=-1)
    counts = [[0] * records for _ in states[0].processes[1:]]
    for before, after in pairwise(states):
        for count, old, new in zip(counts, before.processes[1:], after.processes[1:], strict=True):
            if new.held is not None and new.held != old.held:
                count[new.held.record] += 1
    return tuple(map(tuple, counts))


def waited(states: Sequence[State]) -> tuple[int, ...]:
    """Return for each process the number of states in which it keeps a record that may have to be sent again."""
    lives = zip(*(state.processes for state in states), strict=True)
    return tuple(sum(bool(process.outbox) or process.output is not None for process in life) for life in lives)


def variant(settings: Settings, action: Action) -> str:
    """Return the sentence for an action whose effect the settings change; empty if the action's usual sentence fits."""
    name = action.name
    if name == "store":
        kind = "visible" if action.which == settings.last else "durable"
        return f"Process {{which}} makes its output for the record {kind}, {_with_its_id(settings)}."
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
    """Return a state as one line of text: processes, messages in flight, output, and faults that may still happen."""
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
    return str(message.record) + (f"#{message.name}" if message.name != message.record else "")


def _ids(bits: int) -> str:
    return listed(members(bits))
