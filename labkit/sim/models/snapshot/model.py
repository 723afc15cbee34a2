"""The simulator of a bank whose branches send each other money, and of three ways to take a snapshot of it.

Naive: each process copies its account whenever it likes. Stop the world: all processes pause, the channels drain, all
copy their accounts, all resume. Chandy and Lamport (Distributed Snapshots, 1985): a process records its account and at
once sends a marker into every channel; it saves each transfer that arrives before the sender's marker, and no process
stops. A crash loses the memory of a process; then all processes go back to the last completed snapshot. The parameter
`broken` leaves out one rule.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from labkit.core.errors import InvalidInput
from labkit.sim.model import Action, Property, crash, from_fields
from labkit.sim.models.snapshot.claims import VARIANTS, claims, text
from labkit.sim.models.snapshot.state import (
    AMOUNT,
    MARKER,
    MARKERS,
    NAIVE,
    PARAMETERS,
    PER_CHANNEL,
    STOP,
    Account,
    Channel,
    Part,
    Process,
    Snapshot,
    State,
    beginning,
    ends,
    in_channels,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel
from labkit.sim.wording import members

_BELONGS_TO = {"forget_channels": MARKERS, "late_markers": MARKERS, "forget_pause": STOP, "forget_drain": STOP}
"""The algorithm that each omitted rule belongs to."""


class Guards(RuleModel[State]):
    """The part of the simulator that computes which actions are possible in a state."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.count, self.algorithm, self.broken = (int(values["processes"]), values["algorithm"], values["broken"])
        owner = _BELONGS_TO.get(str(self.broken), self.algorithm)
        if owner != self.algorithm:
            raise InvalidInput(
                f"broken={self.broken} leaves out a rule that the algorithm {self.algorithm} does not have; set "
                f"algorithm={owner}."
            )
        self.ends = ends(self.count)
        self._channel = {(at.sender, at.receiver): number for number, at in enumerate(self.ends)}
        self._number_of = {at.name: number for number, at in enumerate(self.ends)}
        self._everyone = (1 << self.count) - 1
        self._own = {
            name: [Action(name, which + 1) for which in range(self.count)]
            for name in ("copy", "record", "announce", "pause", "resume", "crash")
        }
        self._between = {
            name: [Action(name, at.name) for at in self.ends] for name in ("transfer", "receive", "overtake")
        }
        self._restore_all = Action("restore")
        self._out = [[number for number, at in enumerate(self.ends) if at.sender == p] for p in range(self.count)]

    def actions(self, state: State) -> Sequence[Action]:
        processes, channels, _, _, _, _, reorderings, crashes = state
        enabled: list[Action] = []
        copying = self._may_copy(state) if self.algorithm == STOP else True
        is_down = False
        for which, process in enumerate(processes):
            if process.account is None:
                is_down = True
                continue
            if state.transfers:
                self._transfers(process, which, enabled)
            self._snapshot_steps(state, which, enabled, copying=copying)
            if crashes:
                enabled.append(self._own["crash"][which])
        for number, queue in enumerate(channels):
            if queue:
                if processes[self.ends[number].receiver].account is not None:
                    enabled.append(self._between["receive"][number])
                if reorderings and len(queue) > 1:
                    enabled.append(self._between["overtake"][number])
        if is_down:
            enabled.append(self._restore_all)
        return enabled

    def _transfers(self, process: Process, which: int, enabled: list[Action]) -> None:
        assert process.account is not None
        if process.account.balance >= AMOUNT and (not process.paused or self.broken == "forget_pause"):
            enabled += [self._between["transfer"][number] for number in self._out[which]]

    def _snapshot_steps(self, state: State, which: int, enabled: list[Action], *, copying: bool) -> None:
        process, own = state.processes[which], self._own
        may_begin = process.part is None and (state.running or state.snapshots > 0)
        if self.algorithm == NAIVE:
            if may_begin:
                enabled.append(own["copy"][which])
        elif self.algorithm == MARKERS:
            if process.copy is None and may_begin:
                enabled.append(own["record"][which])
            elif process.awaited >> which & 1:
                enabled.append(own["announce"][which])
        elif process.paused:
            if not state.running:
                enabled.append(own["resume"][which])
            elif process.part is None and copying:
                enabled.append(own["copy"][which])
        elif may_begin:
            enabled.append(own["pause"][which])

    def _may_copy(self, state: State) -> bool:
        """Return whether every process is paused or has copied its account, and every channel is empty.

        Only then may a process copy its account. The simulator looks into the channels; real processes would need
        messages to find this out.
        """
        ready = all(process.paused or process.part is not None for process in state.processes)
        return ready and (self.broken == "forget_drain" or not any(state.channels))


class Bank(Guards):
    """The simulator of a bank whose branches send each other money and take snapshots of all accounts.

    Raises `InvalidInput` if `broken` leaves out a rule that the chosen algorithm does not have.
    """

    name, version, parameters = "snapshot", 1, PARAMETERS

    def initial(self) -> State:
        """Return the initial state: every process has the same money, and no transfer is in flight."""
        processes = tuple(Process(None, part.account) for part in beginning(self.count))
        left = {name: int(self.values[name]) for name in ("transfers", "snapshots", "reorderings", "crashes")}
        return State(processes, ((),) * len(self.ends), running=False, completed=(), **left)

    def apply(self, state: State, action: Action) -> State:
        """Return the state after an action.

        The number in `action` is either the number of a process, from 1, or, for an action on a channel, the channel's
        name: 12 is the channel from process 1 to process 2 (see `Ends.name`).
        """
        name, which = action
        if name in self._between:
            return self._effects[name](state, self._number_of[which])
        return self._effects[name](state, which - 1)

    # Money.

    def _transfer(self, state: State, number: int) -> State:
        sender = self.ends[number].sender
        process = state.processes[sender]
        assert process.account is not None
        balance, sent, received = process.account
        of_channel = sent >> number * PER_CHANNEL & (1 << PER_CHANNEL) - 1
        transfer = number * PER_CHANNEL + of_channel.bit_count()
        account = Account(balance - AMOUNT, sent | 1 << transfer, received)
        state = _with_channel(state, number, (*state.channels[number], transfer))
        return _with_process(state._replace(transfers=state.transfers - 1), sender, process._replace(account=account))

    def _receive(self, state: State, number: int) -> State:
        sender, receiver = self.ends[number]
        queue = state.channels[number]
        state = _with_channel(state, number, queue[1:])
        if queue[0] == MARKER:
            return self._read_marker(state, sender, receiver)
        part, account, copy, awaited, in_flight, paused = state.processes[receiver]
        assert account is not None
        transfer = 1 << queue[0]
        account = Account(account.balance + AMOUNT, account.sent, account.received | transfer)
        if copy is not None and awaited >> sender & 1 and self.broken != "forget_channels":
            in_flight |= transfer
        return _with_process(state, receiver, Process(part, account, copy, awaited, in_flight, paused))

    def _overtake(self, state: State, number: int) -> State:
        first, second, *rest = state.channels[number]
        swapped = _with_channel(state, number, (second, first, *rest))
        return swapped._replace(reorderings=state.reorderings - 1)

    # Snapshots.

    def _copy(self, state: State, which: int) -> State:
        process = state.processes[which]
        assert process.account is not None
        return self._stored(_begun(state), which, process._replace(part=Part(process.account)))

    def _record(self, state: State, which: int) -> State:
        return self._recorded(_begun(state), which, self._everyone & ~(1 << which))

    def _read_marker(self, state: State, sender: int, receiver: int) -> State:
        process = state.processes[receiver]
        if process.copy is None:
            if process.part is not None:
                return state
            return self._recorded(_begun(state), receiver, self._everyone & ~(1 << receiver | 1 << sender))
        return self._awaiting(state, receiver, process._replace(awaited=process.awaited & ~(1 << sender)))

    def _recorded(self, state: State, which: int, awaited: int) -> State:
        """Return the state after a process has copied its account and, in the same step, sent its markers.

        Both happen in one step, so that the process sends no transfer in between. `awaited` has one bit for each
        process whose marker is missing.
        """
        process = state.processes[which]
        if self.broken == "late_markers":
            awaited |= 1 << which
        else:
            state = self._marked(state, which)
        return self._awaiting(state, which, process._replace(copy=process.account, awaited=awaited))

    def _marked(self, state: State, which: int) -> State:
        for number in self._out[which]:
            state = _with_channel(state, number, (*state.channels[number], MARKER))
        return state

    def _announce(self, state: State, which: int) -> State:
        process = state.processes[which]
        left = process._replace(awaited=process.awaited & ~(1 << which))
        return self._awaiting(self._marked(state, which), which, left)

    def _awaiting(self, state: State, which: int, process: Process) -> State:
        if process.awaited:
            return _with_process(state, which, process)
        assert process.copy is not None
        part = Part(process.copy, process.in_flight)
        return self._stored(state, which, Process(part, process.account, None, 0, 0, process.paused))

    def _stored(self, state: State, which: int, process: Process) -> State:
        # The last part completes the snapshot, which then replaces the previous one.
        state = _with_process(state, which, process)
        parts = [each.part for each in state.processes if each.part is not None]
        if len(parts) < self.count:
            return state
        processes = tuple(each._replace(part=None) for each in state.processes)
        return state._replace(processes=processes, running=False, completed=tuple(parts))

    def _pause(self, state: State, which: int) -> State:
        return _with_process(_begun(state), which, state.processes[which]._replace(paused=True))

    def _resume(self, state: State, which: int) -> State:
        return _with_process(state, which, state.processes[which]._replace(paused=False))

    # Crashes.

    def _crash(self, state: State, which: int) -> State:
        return _with_process(state, which, crash(state.processes[which]))._replace(crashes=state.crashes - 1)

    def _restore(self, state: State, _: int) -> State:
        # All processes go back together: one that goes back alone would forget transfers that others still have.
        snapshot = state.completed or beginning(self.count)
        if self.broken == "restore_alone":
            return self._restored_alone(state, snapshot)
        processes = tuple(Process(None, part.account) for part in snapshot)
        within = in_channels(snapshot)
        return state._replace(processes=processes, channels=self._filled(within), running=False)

    def _restored_alone(self, state: State, snapshot: Snapshot) -> State:
        for which, process in enumerate(state.processes):
            if process.account is None:
                state = _with_process(state, which, process._replace(account=snapshot[which].account))
        return state

    def _filled(self, within: int) -> tuple[Channel, ...]:
        every = (1 << PER_CHANNEL) - 1
        return tuple(
            tuple(number * PER_CHANNEL + each for each in members(within >> number * PER_CHANNEL & every))
            for number in range(len(self.ends))
        )

    def properties(self) -> Sequence[Property[State]]:
        return claims(self.values, self.ends)

    def text(self, state: State) -> str:
        return text(self.ends, state)

    def template(self, action: Action) -> str:
        """Return the sentence for an action: the usual one, or a variant if the parameter `broken` changes it."""
        variant = VARIANTS.get((str(self.broken), action.name))
        return variant or super().template(action)

    def words(self, action: Action) -> Mapping[str, object]:
        """Return the values of a sentence's placeholders: a channel's sender and receiver, and an amount."""
        sender, receiver = divmod(max(action.which, 0), 10)
        return {"sender": sender, "receiver": receiver, "amount": AMOUNT}

    rules: ClassVar[dict[str, Rule[State]]] = {
        "transfer": Rule(
            _transfer, "Process {sender} takes {amount} from its account and sends it to process {receiver}."
        ),
        "receive": Rule(_receive, "Process {receiver} reads the next message of process {sender}."),
        "overtake": Rule(
            _overtake,
            "A message from process {sender} to process {receiver} overtakes the one before it.",
            Event.REORDER,
        ),
        "copy": Rule(_copy, "Process {which} copies its account, so its part of the snapshot is complete."),
        "record": Rule(
            _record,
            "Process {which} has seen no marker, records its account, and sends a marker into each of its channels.",
        ),
        "announce": Rule(
            _announce, "Process {which} sends the markers that it should have sent when it recorded its account."
        ),
        "pause": Rule(_pause, "Process {which} pauses: it begins no transfer, and still reads what comes in."),
        "resume": Rule(_resume, "Process {which} resumes."),
        "crash": Rule(
            _crash, "Process {which} dies; only its part of the snapshot is left, if it was complete.", Event.CRASH
        ),
        "restore": Rule(
            _restore,
            "The dead start again, and all processes go back to the last completed snapshot, or else to the beginning.",
            Event.RESTART,
        ),
    }


# Built from all fields at once, since a search builds a state for every step.

_as_state = from_fields(State)


def _with_process(state: State, which: int, process: Process) -> State:
    at = state.processes
    processes = (*at[:which], process, *at[which + 1 :])
    return _as_state((processes, *state[1:]))


def _with_channel(state: State, number: int, queue: Channel) -> State:
    at = state.channels
    channels = (*at[:number], queue, *at[number + 1 :])
    return _as_state((state.processes, channels, *state[2:]))


def _begun(state: State) -> State:
    return state if state.running else state._replace(running=True, snapshots=max(0, state.snapshots - 1))
