"""A chain of processes that hand records on over a network which loses, doubles, delays and reorders them.

A sender cannot know whether its record has arrived, so it repeats it until it is acknowledged, and the receiver must
know it again by its id. Retry and deduplication are settings; so is when a process acknowledges. Strong and weak
productions are those of MillWheel (Akidau et al., 2013): strong writes id and output durably in one step before
anything is sent on, weak sends first, without that write, and waits until everything downstream is done; without
deduplication the latter is the older design in which every process waits for all those after it.
A connection here deduplicates while it lives, as TCP does, and is gone with either of its ends.
What a record does to a process beside its output is left out: only what comes out at the end of the chain counts.
This module must not count lost or duplicate records.
"""

from collections.abc import Sequence
from typing import ClassVar

from labkit.sim.model import Action, Property, crash
from labkit.sim.models.delivery import network
from labkit.sim.models.delivery.claims import claims
from labkit.sim.models.delivery.guards import Guards
from labkit.sim.models.delivery.narration import text, variant
from labkit.sim.models.delivery.parts import Hop, Message, Output, Process, Stage, State
from labkit.sim.models.delivery.settings import PARAMETERS, VERSION
from labkit.sim.rules import Event, Rule


class Delivery(Guards):
    """One configuration of the chain."""

    name, version, parameters = "delivery", VERSION, PARAMETERS

    def initial(self) -> State:
        """The source has every record in its log; nobody else has anything."""
        records = tuple(Message(record, record) for record in range(self.settings.records))
        others = (Process(stage=Stage.IDLE),) * self.settings.last
        productions = self.settings.records if self.settings.fresh else 0
        hops = (Hop(),) * self.settings.last
        return State((Process(records, stage=Stage.IDLE), *others), hops, (), productions, self.settings.faults)

    # Sending.

    def _send(self, state: State, which: int) -> State:
        message = self._unsent(state, which)[0]
        assert message is not None
        state = network.send(state, which, message)
        if self.settings.retry:
            return state
        process = state.processes[which]
        left = tuple(each for each in process.outbox if each != message)
        return _with_process(state, which, process._replace(outbox=left))

    def _send_early(self, state: State, which: int) -> State:
        message = self._unsent(state, which)[1]
        assert message is not None
        return network.less(network.send(state, which, message), "delays")

    def _hear(self, state: State, which: int) -> State:
        state, name = network.hear(state, which)
        process = state.processes[which]
        if process.output is not None and process.output.name == name:
            return self._settled(state, which, process)
        left = tuple(message for message in process.outbox if message.name != name)
        return _with_process(state, which, process._replace(outbox=left))

    def _settled(self, state: State, which: int, process: Process) -> State:
        """A weak production has arrived at the end: now its input's id is noted, and its sender may be told."""
        if self.settings.broken == "ack_early":
            return _with_process(state, which, _idle(self._noted(process)))
        return _with_process(state, which, self._noted(process)._replace(stage=Stage.DONE, output=None))

    # Receiving.

    def _taken(self, state: State, which: int) -> tuple[State, Message]:
        return network.take(state, which - 1, remembers=self.settings.dedup == "connection")

    def _receive(self, state: State, which: int) -> State:
        state, message = self._taken(state, which)
        if self.settings.broken == "ack_early":
            state = network.acknowledge(state, which - 1, message.name)
        working = state.processes[which]._replace(stage=Stage.WORKING, held=message)
        return _with_process(state, which, self._noted(working) if self.settings.broken == "note_early" else working)

    def _discard(self, state: State, which: int) -> State:
        """A record that it knows is acknowledged again: its first acknowledgement may have been lost."""
        state, message = self._taken(state, which)
        return network.acknowledge(state, which - 1, message.name) if self.settings.retry else state

    def _store(self, state: State, which: int) -> State:
        """Id and output become durable in one write; at the end of the chain the output is what everybody sees."""
        process = state.processes[which]
        held = process.held
        assert held is not None
        late = self.settings.broken == "note_late"
        process = process._replace(stage=Stage.STORED) if late else self._noted(process)._replace(stage=Stage.DONE)
        if which == self.settings.last:
            row = Output(held.record, self.settings.faults.crashes - state.faults.crashes)
            state = state._replace(out=(*state.out, row))
        else:
            state, output = self._named(state, held)
            process = process._replace(outbox=(*process.outbox, output))
        return _with_process(state, which, self._finished(process))

    def _finished(self, process: Process) -> Process:
        """The process after its note: it is idle where nobody waits for an acknowledgement."""
        is_over = not self.settings.retry or self.settings.broken == "ack_early"
        return _idle(process) if is_over and process.stage is Stage.DONE else process

    def _produce(self, state: State, which: int) -> State:
        process = state.processes[which]
        assert process.held is not None
        state, output = self._named(state, process.held)
        return _with_process(state, which, process._replace(stage=Stage.WAITING, output=output))

    def _named(self, state: State, held: Message) -> tuple[State, Message]:
        """The production that a process makes of a record, with its id."""
        if not self.settings.fresh:
            return state, held
        return state._replace(productions=state.productions + 1), Message(held.record, state.productions)

    def _note(self, state: State, which: int) -> State:
        process = self._noted(state.processes[which])._replace(stage=Stage.DONE)
        return _with_process(state, which, self._finished(process))

    def _noted(self, process: Process) -> Process:
        """The process with the id of its record in the table, if there is one."""
        assert process.held is not None
        outbox, ids, memory, stage, held, output = process
        if self.settings.dedup == "durable":
            ids |= 1 << process.held.name
        elif self.settings.dedup == "volatile":
            memory |= 1 << process.held.name
        return Process(outbox, ids, memory, stage, held, output)

    def _ack(self, state: State, which: int) -> State:
        process = state.processes[which]
        assert process.held is not None
        state = network.acknowledge(state, which - 1, process.held.name)
        return _with_process(state, which, _idle(process))

    # Collecting.

    def _collect(self, state: State, which: int) -> State:
        process, old = state.processes[which], self._collectable(state, which)
        left = process._replace(ids=process.ids & ~old, memory=process.memory & ~old)
        return _with_process(state, which, left)

    # What goes wrong.

    def _crash(self, state: State, which: int) -> State:
        state = network.less(_with_process(state, which, crash(state.processes[which])), "crashes")
        return network.cut(state, which) if self.settings.dedup == "connection" else state

    def _restart(self, state: State, which: int) -> State:
        return _with_process(state, which, state.processes[which]._replace(stage=Stage.IDLE))

    def _drop(self, state: State, which: int) -> State:
        return network.drop(state, which - 1)

    def _drop_ack(self, state: State, which: int) -> State:
        return network.drop_ack(state, which)

    def _duplicate(self, state: State, which: int) -> State:
        return network.duplicate(state, which - 1)

    def _reorder(self, state: State, which: int) -> State:
        return network.reorder(state, which - 1)

    def properties(self) -> Sequence[Property[State]]:
        """What the judge says of every end, and that no record is ever without a durable place."""
        return claims(self.settings, self.text)

    def text(self, state: State) -> str:
        """Processes, network, what came out."""
        return text(state)

    def template(self, action: Action) -> str:
        """The rule's sentence, or what the settings make of the action."""
        return variant(self.settings, action) or super().template(action)

    rules: ClassVar[dict[str, Rule[State]]] = {
        "send": Rule(_send, "Process {which} sends the oldest record of which nothing is under way."),
        "send_early": Rule(
            _send_early,
            "The timeout of process {which} comes although nothing was lost: it sends a second time.",
            Event.DELAY,
        ),
        "hear": Rule(_hear, "Process {which} reads an acknowledgement."),
        "receive": Rule(_receive, "Process {which} takes a record from its channel and works on it in memory."),
        "discard": Rule(
            _discard, "Process {which} knows the id of the next record, drops it and acknowledges it again."
        ),
        "store": Rule(_store, "Process {which} makes what came of the record durable."),
        "produce": Rule(_produce, "Process {which} keeps what came of the record in memory, to send it on, and waits."),
        "note": Rule(_note, "Process {which} notes the id of its record."),
        "ack": Rule(_ack, "Process {which} acknowledges its record."),
        "collect": Rule(_collect, "Process {which} forgets ids.", on_cue=True),
        "crash": Rule(_crash, "Process {which} dies; what it had in memory is gone.", Event.CRASH),
        "restart": Rule(_restart, "Process {which} starts again with what is durable.", Event.RESTART),
        "drop": Rule(_drop, "The next record to process {which} is lost.", Event.DROP),
        "drop_ack": Rule(_drop_ack, "The next acknowledgement to process {which} is lost.", Event.DROP),
        "duplicate": Rule(_duplicate, "The next record to process {which} is there a second time.", Event.DUPLICATE),
        "reorder": Rule(_reorder, "A record to process {which} overtakes the one before it.", Event.REORDER),
    }
    # Every action names a process: the one that acts, or to which a message is on its way.


def _idle(process: Process) -> Process:
    return Process(process.outbox, process.ids, process.memory, Stage.IDLE)


def _with_process(state: State, which: int, process: Process) -> State:
    """Built by position: `_replace` would take three times as long."""
    at, hops, out, productions, faults = state
    return State((*at[:which], process, *at[which + 1 :]), hops, out, productions, faults)
