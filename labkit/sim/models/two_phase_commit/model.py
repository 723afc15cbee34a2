"""The simulator of two-phase commit with faults: crashes, restarts from logs, lost messages and timeouts.

The transaction is a transfer: every participant must give or take money, all of them or none. With presumed abort the
coordinator logs only a commit, so a coordinator without a record answers "abort", and no participant acknowledges an
abort. A participant that has voted yes is in doubt: it holds its locks and must wait. The parameter `broken` leaves out
one rule.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from labkit.sim.model import Action, Property, crash, from_fields
from labkit.sim.models.two_phase_commit.state import (
    FINAL,
    PARAMETERS,
    VERSION,
    Coordinator,
    Entry,
    Message,
    Participant,
    Phase,
    Queue,
    State,
    claims,
    gathered,
    spread,
    text,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel


class Guards(RuleModel[State]):
    """The part of the simulator that computes which actions are possible in a state."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.count = int(values["participants"])
        self.everyone = (1 << self.count) - 1
        self.broken = values["broken"]
        self.coordinator_returns = bool(values["coordinator_returns"])
        self._of = {name: [Action(name, which) for which in range(self.count)] for name in self.rules}
        self._alone = {name: Action(name) for name in self.rules}

    def actions(self, state: State) -> Sequence[Action]:
        enabled = self._coordinator_actions(state)
        for which in range(self.count):
            self._participant_actions(state, which, enabled)
            self._queue_actions(state, which, enabled)
        return enabled

    def _coordinator_actions(self, state: State) -> list[Action]:
        (_, phase, votes, _), alone = state.coordinator, self._alone
        if phase is Phase.DOWN:
            return [alone["restart_coordinator"]] if self.coordinator_returns else []
        enabled = []
        if phase is Phase.WORKING:
            enabled.append(alone["start"])
        elif phase is Phase.WAITING:
            if votes == self.everyone or (self.broken == "early" and votes):
                enabled.append(alone["decide_commit"])
            enabled.append(alone["give_up"])
        elif phase is Phase.DECIDED:
            enabled.append(alone["announce"])
        if state.crashes:
            enabled.append(alone["crash_coordinator"])
        return enabled

    def _participant_actions(self, state: State, which: int, enabled: list[Action]) -> None:
        of, phase = self._of, state.participants[which].phase
        outward = state.outward[which]
        if phase is Phase.DOWN:
            enabled.append(of["restart"][which])
            return
        if outward:
            enabled.append(of["read"][which])
            if phase is Phase.WORKING and outward[0] is Message.PREPARE:
                enabled.append(of["refuse"][which])
        if phase is Phase.WORKING:
            enabled.append(of["abort_unasked"][which])
        elif phase is Phase.IN_DOUBT:
            if not outward and not state.inward[which]:
                enabled.append(of["inquire"][which])
            if self.broken == "heuristic":
                enabled.append(of["abort_alone"][which])
        if state.crashes:
            enabled.append(of["crash"][which])

    def _queue_actions(self, state: State, which: int, enabled: list[Action]) -> None:
        of, (_, phase, _, acks) = self._of, state.coordinator
        outward, inward = state.outward[which], state.inward[which]
        if inward:
            if phase is not Phase.DOWN:
                enabled.append(of["hear"][which])
        elif not outward and phase is Phase.COMMITTED and not acks >> which & 1:
            enabled.append(of["resend"][which])
        if state.losses:
            if outward:
                enabled.append(of["lose_outward"][which])
            if inward:
                enabled.append(of["lose_inward"][which])


OUTCOME = {Entry.COMMIT: Phase.COMMITTED, Entry.ABORT: Phase.ABORTED, Entry.ALONE: Phase.ABORTED}


class TwoPhaseCommit(Guards):
    """The simulator of two-phase commit in which coordinator and participants can crash, and messages can get lost."""

    name, version, parameters = "two_phase_commit", VERSION, PARAMETERS

    def initial(self) -> State:
        """Return the initial state: every process is working, and the coordinator has not asked for votes."""
        participants = (Participant((), Phase.WORKING),) * self.count
        empty = ((),) * self.count
        crashes, losses = int(self.values["crashes"]), int(self.values["losses"])
        return State(Coordinator((), Phase.WORKING), participants, empty, empty, 0, Phase.WORKING, crashes, losses)

    def seats(self, state: State) -> Sequence[Any]:
        """Return one tuple per participant: its state, its two message queues, and its bits in three sets.

        The sets `votes`, `acks` and `promised` contain participants. A search may reorder the tuples, because no
        property distinguishes the participants.
        """
        (_, _, votes, acks), at, outward, inward, promised, *_ = state
        notes = (spread(bits, self.count) for bits in (votes, acks, promised))
        return list(zip(at, outward, inward, *notes, strict=True))

    def seated(self, state: State, order: Sequence[int]) -> State:
        (log, phase, votes, acks), at, outward, inward, promised, *rest = state
        votes, acks, promised = (gathered(bits, order) for bits in (votes, acks, promised))
        rows = (tuple(map(row.__getitem__, order)) for row in (at, outward, inward))
        return _as_state((Coordinator(log, phase, votes, acks), *rows, promised, *rest))

    # The coordinator.

    def _start(self, state: State, _: int) -> State:
        return self._tell_all(state, Coordinator((), Phase.WAITING), Message.PREPARE)

    def _give_up(self, state: State, _: int) -> State:
        return self._tell_all(state, Coordinator(state.coordinator.log, Phase.ABORTED), Message.ABORT)

    def _decide_commit(self, state: State, _: int) -> State:
        log, votes = state.coordinator.log, state.coordinator.votes
        kept = log if self.broken == "forget_decision" else (*log, Entry.COMMIT)
        return _with_coordinator(state, Coordinator(kept, Phase.DECIDED, votes))

    def _announce(self, state: State, _: int) -> State:
        after = self._tell_all(state, Coordinator(state.coordinator.log, Phase.COMMITTED), Message.COMMIT)
        return after._replace(announced=Phase.COMMITTED) if state.announced is Phase.WORKING else after

    def _tell_all(self, state: State, coordinator: Coordinator, message: Message) -> State:
        outward = tuple((*queue, message) for queue in state.outward)
        announced = state.announced
        if message is Message.ABORT and announced is Phase.WORKING:
            announced = Phase.ABORTED
        return state._replace(coordinator=coordinator, outward=outward, announced=announced)

    def _hear(self, state: State, which: int) -> State:
        queue = state.inward[which]
        message = queue[0]
        log, phase, votes, acks = state.coordinator
        state = _with_inward(state, which, queue[1:])
        if message is Message.YES and phase is Phase.WAITING:
            return _with_coordinator(state, Coordinator(log, phase, votes | 1 << which, acks))
        if message is Message.NO and phase is Phase.WAITING:
            return self._give_up(state, which)
        if message is Message.ACK and phase is Phase.COMMITTED:
            acks |= 1 << which
            if acks == self.everyone:
                return _with_coordinator(state, Coordinator((*log, Entry.END), Phase.FORGOTTEN))
            return _with_coordinator(state, Coordinator(log, phase, votes, acks))
        if message is Message.INQUIRY:
            return self._answer(state, which)
        return state

    def _answer(self, state: State, which: int) -> State:
        phase = state.coordinator.phase
        if phase is Phase.COMMITTED:
            return self._send(state, which, Message.COMMIT)
        if phase in (Phase.ABORTED, Phase.FORGOTTEN):
            announced = Phase.ABORTED if state.announced is Phase.WORKING else state.announced
            return self._send(state, which, Message.ABORT)._replace(announced=announced)
        return state

    def _resend(self, state: State, which: int) -> State:
        return self._send(state, which, Message.COMMIT)

    def _send(self, state: State, which: int, message: Message) -> State:
        return _with_outward(state, which, (*state.outward[which], message))

    def _crash_coordinator(self, state: State, _: int) -> State:
        return _with_coordinator(state, crash(state.coordinator))._replace(crashes=state.crashes - 1)

    def _restart_coordinator(self, state: State, _: int) -> State:
        log = state.coordinator.log
        last = log[-1] if log else None
        phase = {Entry.COMMIT: Phase.DECIDED, Entry.END: Phase.FORGOTTEN, None: Phase.ABORTED}[last]
        return _with_coordinator(state, Coordinator(log, phase))

    # The participants and their queues.

    def _read(self, state: State, which: int) -> State:
        queue = state.outward[which]
        message = queue[0]
        log, phase = state.participants[which]
        state = _with_outward(state, which, queue[1:])
        if message is Message.PREPARE:
            return self._vote(state, which) if phase is Phase.WORKING else self._reply(state, which, Message.NO)
        entry, outcome = (Entry.COMMIT, Phase.COMMITTED) if message is Message.COMMIT else (Entry.ABORT, Phase.ABORTED)
        if phase not in FINAL:
            state = self._become(state, which, Participant((*log, entry), outcome))
        return self._reply(state, which, Message.ACK) if message is Message.COMMIT else state

    def _vote(self, state: State, which: int) -> State:
        log = state.participants[which].log
        kept = log if self.broken == "forget_vote" else (*log, Entry.PREPARED)
        state = self._become(state, which, Participant(kept, Phase.IN_DOUBT))
        return self._reply(state, which, Message.YES)._replace(promised=state.promised | 1 << which)

    def _refuse(self, state: State, which: int) -> State:
        rest = state.outward[which][1:]
        aborted = self._abort_unasked(_with_outward(state, which, rest), which)
        return self._reply(aborted, which, Message.NO)

    def _abort_unasked(self, state: State, which: int) -> State:
        return self._become(state, which, Participant((*state.participants[which].log, Entry.ABORT), Phase.ABORTED))

    def _abort_alone(self, state: State, which: int) -> State:
        return self._become(state, which, Participant((*state.participants[which].log, Entry.ALONE), Phase.ABORTED))

    def _inquire(self, state: State, which: int) -> State:
        return self._reply(state, which, Message.INQUIRY)

    def _crash(self, state: State, which: int) -> State:
        down = crash(state.participants[which])
        return self._become(state, which, down)._replace(crashes=state.crashes - 1)

    def _restart(self, state: State, which: int) -> State:
        log = state.participants[which].log
        if not log:
            return self._abort_unasked(state, which)
        return self._become(state, which, Participant(log, OUTCOME.get(log[-1], Phase.IN_DOUBT)))

    def _lose_outward(self, state: State, which: int) -> State:
        return _with_outward(state, which, state.outward[which][1:])._replace(losses=state.losses - 1)

    def _lose_inward(self, state: State, which: int) -> State:
        return _with_inward(state, which, state.inward[which][1:])._replace(losses=state.losses - 1)

    def _become(self, state: State, which: int, participant: Participant) -> State:
        at = state.participants
        return _as_state((state.coordinator, (*at[:which], participant, *at[which + 1 :]), *state[2:]))

    def _reply(self, state: State, which: int, message: Message) -> State:
        return _with_inward(state, which, (*state.inward[which], message))

    def properties(self) -> Sequence[Property[State]]:
        return claims()

    def text(self, state: State) -> str:
        return text(state)

    rules: ClassVar[dict[str, Rule[State]]] = {
        "start": Rule(_start, "The coordinator asks every participant to prepare."),
        "give_up": Rule(_give_up, "The coordinator has waited long enough and tells all to abort.", Event.TIMEOUT),
        "decide_commit": Rule(
            _decide_commit, "The coordinator has a yes from everybody and logs the commit: the decision."
        ),
        "announce": Rule(_announce, "The coordinator tells all to commit."),
        "crash_coordinator": Rule(_crash_coordinator, "The coordinator dies; only its log is left.", Event.CRASH),
        "restart_coordinator": Rule(
            _restart_coordinator, "The coordinator starts again from its log; no record means abort.", Event.RESTART
        ),
        "read": Rule(_read, "Participant {which} reads its next message."),
        "refuse": Rule(_refuse, "Participant {which} is asked to prepare, aborts and votes no."),
        "abort_unasked": Rule(
            _abort_unasked, "Participant {which} has not voted, has waited long enough, and aborts.", Event.TIMEOUT
        ),
        "inquire": Rule(_inquire, "Participant {which} is in doubt and asks for the decision."),
        "abort_alone": Rule(
            _abort_alone, "Participant {which} is in doubt, has waited long enough, and aborts alone.", Event.TIMEOUT
        ),
        "crash": Rule(_crash, "Participant {which} dies; only its log is left.", Event.CRASH),
        "restart": Rule(_restart, "Participant {which} starts again from its log.", Event.RESTART),
        "hear": Rule(_hear, "The coordinator reads the next message from participant {which}."),
        "resend": Rule(
            _resend, "The coordinator has no acknowledgement from participant {which} and sends the commit again."
        ),
        "lose_outward": Rule(_lose_outward, "The next message to participant {which} is lost.", Event.DROP),
        "lose_inward": Rule(_lose_inward, "The next message from participant {which} is lost.", Event.DROP),
    }


# Built from all fields at once, since a search builds a state for every step.

_as_state = from_fields(State)


def _with_coordinator(state: State, coordinator: Coordinator) -> State:
    return _as_state((coordinator, *state[1:]))


def _with_outward(state: State, which: int, queue: Queue) -> State:
    at = state.outward
    return _as_state((*state[:2], (*at[:which], queue, *at[which + 1 :]), *state[3:]))


def _with_inward(state: State, which: int, queue: Queue) -> State:
    at = state.inward
    return _as_state((*state[:3], (*at[:which], queue, *at[which + 1 :]), *state[4:]))
