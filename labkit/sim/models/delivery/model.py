"""The simulator of a chain of processes over a network that loses, duplicates, delays and reorders records.

A sender cannot know whether its record has arrived, so it repeats the record until it is acknowledged, and the receiver
must recognise duplicates by their id. Parameters choose whether senders retry, how receivers deduplicate, and when a
process acknowledges.

A production is the output record that a process makes of an input record; there are strong and weak productions, as in
MillWheel (Akidau et al., 2013). A strong production is written durably, with the input's id in the same step, before
the process sends anything on. A weak production is sent on without that write, and the process waits until all
downstream processes are done. A connection deduplicates here while it lives, as TCP does, and ends when the process at
either end crashes. Hop h is the network from process h to process h + 1.
"""

from collections.abc import Sequence
from typing import ClassVar

from labkit.sim.model import Action, Property, crash
from labkit.sim.models.delivery.claims import Judge, claims, text, variant
from labkit.sim.models.delivery.state import (
    PARAMETERS,
    Hop,
    Ids,
    Message,
    Output,
    Process,
    Settings,
    Stage,
    State,
    settings,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel, one_less

# Built by position: `_replace` would take three times as long, and a state is built for every step of a search.


def _with_hop(state: State, number: int, hop: Hop) -> State:
    processes, at, out, productions, faults = state
    return State(processes, (*at[:number], hop, *at[number + 1 :]), out, productions, faults)


def less(state: State, fault: str) -> State:
    """Return the state after one of the remaining faults of the kind `fault` has been used up."""
    return state._replace(faults=one_less(state.faults, fault))


def send(state: State, hop: int, message: Message) -> State:
    """Return the state after a record was sent over network link `hop`, which leads from process `hop` to the next."""
    forward, back, ids = state.hops[hop]
    return _with_hop(state, hop, Hop((*forward, message), back, ids))


def take(state: State, hop: int, *, remembers: bool) -> tuple[State, Message]:
    """Return a pair: the state after the receiver of network link `hop` has taken the next record, and this record.

    With `remembers`, the connection stores the id of the record, to recognise duplicates.
    """
    forward, back, ids = state.hops[hop]
    message = forward[0]
    ids |= 1 << message.name if remembers else 0
    return _with_hop(state, hop, Hop(forward[1:], back, ids)), message


def acknowledge(state: State, hop: int, name: int) -> State:
    """Return the state after an acknowledgement of the record with the id `name` was sent back over link `hop`."""
    forward, back, ids = state.hops[hop]
    return _with_hop(state, hop, Hop(forward, (*back, name), ids))


def take_acknowledgement(state: State, hop: int) -> tuple[State, int]:
    """Return a pair: the state after an acknowledgement arrived over network link `hop`, and its record's id."""
    forward, back, ids = state.hops[hop]
    return _with_hop(state, hop, Hop(forward, back[1:], ids)), back[0]


def cut(state: State, process: int) -> State:
    """Return the state after both connections of a process were closed, which loses the messages and ids in them."""
    for hop in (process - 1, process):
        if 0 <= hop < len(state.hops):
            state = _with_hop(state, hop, Hop())
    return state


class Guards(RuleModel[State]):
    """The part of the simulator that computes which actions are possible in a state."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings: Settings = settings(values)
        self.judge = Judge(self.settings.records)
        self._of = {name: [Action(name, p) for p in range(self.settings.processes)] for name in self.rules}

    def actions(self, state: State) -> Sequence[Action]:
        enabled: list[Action] = []
        for which, process in enumerate(state.processes):
            if process.stage is Stage.DOWN:
                enabled.append(self._of["restart"][which])
            else:
                if which:
                    self._receiver_actions(state, which, enabled)
                if which < self.settings.last:
                    self._sender_actions(state, which, enabled)
        if any(state.faults):
            for which in range(self.settings.processes):
                self._wrong(state, which, enabled)
        return enabled

    def _receiver_actions(self, state: State, which: int, enabled: list[Action]) -> None:
        process, of = state.processes[which], self._of
        stage = process.stage
        if stage is Stage.IDLE:
            forward = state.hops[which - 1].forward
            if forward:
                enabled.append(of["discard" if self._is_known(state, which, forward[0].name) else "receive"][which])
        elif stage is Stage.WORKING:
            enabled.append(of["produce" if self._waits(which) else "store"][which])
        elif stage is Stage.STORED:
            enabled.append(of["note"][which])
        elif stage is Stage.DONE:
            enabled.append(of["ack"][which])
        if self._collectable(state, which):
            enabled.append(of["collect"][which])

    def _sender_actions(self, state: State, which: int, enabled: list[Action]) -> None:
        hop = state.hops[which]
        if hop.back:
            enabled.append(self._of["hear"][which])
        lost, late = self._unsent(state, which)
        if lost is not None:
            enabled.append(self._of["send"][which])
        if late is not None and state.faults.delays:
            enabled.append(self._of["send_early"][which])

    def _wrong(self, state: State, which: int, enabled: list[Action]) -> None:
        of, (drops, duplicates, _, reorders, crashes) = self._of, state.faults
        if which:
            forward = state.hops[which - 1].forward
            if forward and drops:
                enabled.append(of["drop"][which])
            if forward and duplicates:
                enabled.append(of["duplicate"][which])
            if reorders and len(forward) > 1 and forward[0] != forward[1]:
                enabled.append(of["reorder"][which])
        if drops and which < self.settings.last and state.hops[which].back:
            enabled.append(of["drop_ack"][which])
        if crashes and state.processes[which].stage is not Stage.DOWN:
            enabled.append(of["crash"][which])

    def _to_bring(self, state: State, which: int) -> tuple[Message, ...]:
        process = state.processes[which]
        if which and self.settings.weak:
            return () if process.output is None else (process.output,)
        return process.outbox[: self.settings.window]

    def _unsent(self, state: State, which: int) -> tuple[Message | None, Message | None]:
        """Return two records that a process may send: the oldest one not in flight, and the oldest one in flight.

        Each of the two is None if there is no such record. Sending the second record again is premature, because the
        record or its acknowledgement may still arrive. A real sender cannot know this, but the simulator does, and it
        counts premature sending as a fault.
        """
        lost = late = None
        forward, back, _ = state.hops[which]
        receiver = state.processes[which + 1]
        for message in self._to_bring(state, which):
            if message in forward or message.name in back or message == receiver.held:
                late = late or message
            else:
                lost = lost or message
        return lost, late

    def _is_known(self, state: State, which: int, name: int) -> bool:
        dedup, process = self.settings.dedup, state.processes[which]
        if dedup == "none":
            return False
        if dedup == "connection":
            return bool(state.hops[which - 1].ids >> name & 1)
        noted = process.ids if dedup == "durable" else process.memory
        return noted >> name != 0 if self.settings.broken == "highest_only" else bool(noted >> name & 1)

    def _waits(self, which: int) -> bool:
        return self.settings.weak and which < self.settings.last

    def _collectable(self, state: State, which: int) -> Ids:
        """Return the ids that process `which` may delete from its table of received records, one bit for each.

        Real systems delete an id after some time. Here an id may be deleted only if the simulator knows that no record
        with this id can arrive any more; with `broken=collect_early`, every id may be deleted.
        """
        if not self.settings.collects and self.settings.broken != "collect_early":
            return 0
        process = state.processes[which]
        noted = process.ids | process.memory
        return noted if self.settings.broken == "collect_early" else noted & ~_still_to_come(state, which)


def _still_to_come(state: State, which: int) -> Ids:
    ids = 0
    for process, hop in zip(state.processes[:which], state.hops, strict=False):
        for message in (*process.outbox, *hop.forward, process.held, process.output):
            if message is not None:
                ids |= 1 << message.name
    return ids


class Delivery(Guards):
    """The simulator of a chain of processes that pass records on over a network with faults."""

    name, version, parameters = "delivery", 1, PARAMETERS

    def initial(self) -> State:
        """Return the initial state: the source has every record in its log, and the other processes have none."""
        records = tuple(Message(record, record) for record in range(self.settings.records))
        others = (Process(stage=Stage.IDLE),) * self.settings.last
        productions = self.settings.records if self.settings.fresh else 0
        hops = (Hop(),) * self.settings.last
        return State((Process(records, stage=Stage.IDLE), *others), hops, (), productions, self.settings.faults)

    # Sending.

    def _send(self, state: State, which: int) -> State:
        message = self._unsent(state, which)[0]
        assert message is not None
        state = send(state, which, message)
        if self.settings.retry:
            return state
        process = state.processes[which]
        left = tuple(each for each in process.outbox if each != message)
        return _with_process(state, which, process._replace(outbox=left))

    def _send_early(self, state: State, which: int) -> State:
        message = self._unsent(state, which)[1]
        assert message is not None
        return less(send(state, which, message), "delays")

    def _hear(self, state: State, which: int) -> State:
        state, name = take_acknowledgement(state, which)
        process = state.processes[which]
        if process.output is not None and process.output.name == name:
            return self._settled(state, which, process)
        left = tuple(message for message in process.outbox if message.name != name)
        return _with_process(state, which, process._replace(outbox=left))

    def _settled(self, state: State, which: int, process: Process) -> State:
        if self.settings.broken == "ack_early":
            return _with_process(state, which, _idle(self._noted(process)))
        return _with_process(state, which, self._noted(process)._replace(stage=Stage.DONE, output=None))

    # Receiving.

    def _taken(self, state: State, which: int) -> tuple[State, Message]:
        return take(state, which - 1, remembers=self.settings.dedup == "connection")

    def _receive(self, state: State, which: int) -> State:
        state, message = self._taken(state, which)
        if self.settings.broken == "ack_early":
            state = acknowledge(state, which - 1, message.name)
        working = state.processes[which]._replace(stage=Stage.WORKING, held=message)
        return _with_process(state, which, self._noted(working) if self.settings.broken == "note_early" else working)

    def _discard(self, state: State, which: int) -> State:
        state, message = self._taken(state, which)
        # The first acknowledgement may be lost, so the receiver acknowledges the record again.
        return acknowledge(state, which - 1, message.name) if self.settings.retry else state

    def _store(self, state: State, which: int) -> State:
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
        is_over = not self.settings.retry or self.settings.broken == "ack_early"
        return _idle(process) if is_over and process.stage is Stage.DONE else process

    def _produce(self, state: State, which: int) -> State:
        process = state.processes[which]
        assert process.held is not None
        state, output = self._named(state, process.held)
        return _with_process(state, which, process._replace(stage=Stage.WAITING, output=output))

    def _named(self, state: State, message: Message) -> tuple[State, Message]:
        if not self.settings.fresh:
            return state, message
        return state._replace(productions=state.productions + 1), Message(message.record, state.productions)

    def _note(self, state: State, which: int) -> State:
        process = self._noted(state.processes[which])._replace(stage=Stage.DONE)
        return _with_process(state, which, self._finished(process))

    def _noted(self, process: Process) -> Process:
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
        state = acknowledge(state, which - 1, process.held.name)
        return _with_process(state, which, _idle(process))

    # Collecting.

    def _collect(self, state: State, which: int) -> State:
        process, old = state.processes[which], self._collectable(state, which)
        left = process._replace(ids=process.ids & ~old, memory=process.memory & ~old)
        return _with_process(state, which, left)

    # What goes wrong.

    def _crash(self, state: State, which: int) -> State:
        state = less(_with_process(state, which, crash(state.processes[which])), "crashes")
        return cut(state, which) if self.settings.dedup == "connection" else state

    def _restart(self, state: State, which: int) -> State:
        return _with_process(state, which, state.processes[which]._replace(stage=Stage.IDLE))

    def _drop(self, state: State, which: int) -> State:
        return less(take(state, which - 1, remembers=False)[0], "drops")

    def _drop_ack(self, state: State, which: int) -> State:
        return less(take_acknowledgement(state, which)[0], "drops")

    def _duplicate(self, state: State, which: int) -> State:
        return less(send(state, which - 1, state.hops[which - 1].forward[0]), "duplicates")

    def _reorder(self, state: State, which: int) -> State:
        (first, second, *rest), back, ids = state.hops[which - 1]
        return less(_with_hop(state, which - 1, Hop((second, first, *rest), back, ids)), "reorders")

    def properties(self) -> Sequence[Property[State]]:
        return claims(self.settings, self.judge)

    def text(self, state: State) -> str:
        return text(state)

    def template(self, action: Action) -> str:
        """Return the sentence for an action: the usual one, or a variant if the settings change the action."""
        return variant(self.settings, action) or super().template(action)

    rules: ClassVar[dict[str, Rule[State]]] = {
        "send": Rule(_send, "Process {which} sends its oldest record that is not under way."),
        "send_early": Rule(
            _send_early,
            "Process {which} has a timeout although nothing was lost, and sends a record a second time.",
            Event.DELAY,
        ),
        "hear": Rule(_hear, "Process {which} reads an acknowledgement."),
        "receive": Rule(_receive, "Process {which} takes a record from its channel and works on it in memory."),
        "discard": Rule(
            _discard, "Process {which} knows the id of the next record, drops it and acknowledges it again."
        ),
        "store": Rule(_store, "Process {which} makes its output for the record durable."),
        "produce": Rule(_produce, "Process {which} keeps its output for the record in memory, to send it, and waits."),
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
    at, hops, out, productions, faults = state
    return State((*at[:which], process, *at[which + 1 :]), hops, out, productions, faults)
