"""Gray and Lamport's abstraction of two-phase commit (Consensus on Transaction Commit, 2006; TLA+ module TwoPhase).

No process crashes, no message is lost, and a sent message stays readable for ever, so a set of messages suffices. The
abstraction has 288 states with three participants and 8,832 with five.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from labkit.sim.model import Action, Mood, Property, Word, from_fields, possible
from labkit.sim.models.two_phase_commit.state import PARAMETERS, VERSION, gathered, names, spread
from labkit.sim.parameters import Values
from labkit.sim.rules import Rule, RuleModel


class Position(Word):
    """The state of a participant. The coordinator's decision has the same type, but is never PREPARED."""

    WORKING = "working"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"


class State(NamedTuple):
    """The coordinator's decision (WORKING if there is none), the state of each participant, and two bit sets.

    The set `sent` has the participants that have sent a yes, and `heard` those whose yes the coordinator has read.
    """

    decision: Position
    participants: tuple[Position, ...]
    sent: int
    heard: int


_as_state = from_fields(State)
Effect = Callable[[Any, State, int], State]


def _decided_on(decision: Position) -> Effect:
    return lambda _model, state, _which: _as_state((decision, *state[1:]))


def _became(position: Position) -> Effect:
    def effect(_model: object, state: State, which: int) -> State:
        decision, at, sent, heard = state
        return _as_state((decision, (*at[:which], position, *at[which + 1 :]), sent, heard))

    return effect


class Textbook(RuleModel[State]):
    """The simulator of two-phase commit by Gray and Lamport, in which no process fails and no message is lost."""

    name, version, parameters = "two_phase_commit", VERSION, PARAMETERS

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.participants = int(values["participants"])
        self.everyone = (1 << self.participants) - 1
        self._rows = [
            tuple(Action(act, which) for act in ("prepare", "abort_alone", "hear", "learn_commit", "learn_abort"))
            for which in range(self.participants)
        ]
        self._decisions = Action("decide_commit"), Action("decide_abort")

    def initial(self) -> State:
        """Return the initial state: every process is working, and no message was sent."""
        return State(Position.WORKING, (Position.WORKING,) * self.participants, 0, 0)

    def seats(self, state: State) -> Sequence[Any]:
        """Return one tuple per participant: its state, whether its yes was sent, and whether the yes was read."""
        _, at, sent, heard = state
        return list(zip(at, *(spread(bits, len(at)) for bits in (sent, heard)), strict=True))

    def seated(self, state: State, order: Sequence[int]) -> State:
        decision, at, sent, heard = state
        row = tuple(map(at.__getitem__, order))
        return State(decision, row, gathered(sent, order), gathered(heard, order))

    def actions(self, state: State) -> Sequence[Action]:
        """Return the possible actions, the coordinator's first; actions that would change nothing are left out."""
        decision, participants, sent, heard = state
        undecided = decision is Position.WORKING
        enabled = []
        if undecided:
            if heard == self.everyone:
                enabled.append(self._decisions[0])
            enabled.append(self._decisions[1])
        unheard = sent & ~heard if undecided else 0
        for which, position in enumerate(participants):
            prepare, alone, hear, commit, abort = self._rows[which]
            if position is Position.WORKING:
                enabled += prepare, alone
            if unheard >> which & 1:
                enabled.append(hear)
            if not undecided and position is not decision:
                enabled.append(commit if decision is Position.COMMITTED else abort)
        return enabled

    def _prepare(self, state: State, which: int) -> State:
        decision, at, sent, heard = state
        participants = (*at[:which], Position.PREPARED, *at[which + 1 :])
        return _as_state((decision, participants, sent | 1 << which, heard))

    def _hear(self, state: State, which: int) -> State:
        decision, participants, sent, heard = state
        return _as_state((decision, participants, sent, heard | 1 << which))

    def properties(self) -> Sequence[Property[State]]:
        return (
            Property("consistent", Mood.ALWAYS, "No two participants end differently.", _consistent, _mixed),
            possible("commit_agreement", "All participants have committed.", partial(_all_are, Position.COMMITTED)),
            possible("abort_agreement", "All participants have aborted.", partial(_all_are, Position.ABORTED)),
            Property("decided", Mood.EVENTUALLY, "Every participant has ended.", _decided, self.text),
        )

    def text(self, state: State) -> str:
        participants = ", ".join(f"{which} {position}" for which, position in enumerate(state.participants))
        decision = "undecided" if state.decision is Position.WORKING else state.decision
        return (
            f"coordinator {decision}; {participants}; yes sent by {names(state.sent)}, heard of {names(state.heard)}."
        )

    rules: ClassVar[dict[str, Rule[State]]] = {
        "decide_commit": Rule(
            _decided_on(Position.COMMITTED), "The coordinator has heard every yes and decides to commit."
        ),
        "decide_abort": Rule(_decided_on(Position.ABORTED), "The coordinator decides to abort."),
        "prepare": Rule(_prepare, "Participant {which} prepares and votes yes."),
        "abort_alone": Rule(_became(Position.ABORTED), "Participant {which} has not voted and aborts."),
        "hear": Rule(_hear, "The coordinator hears the yes of participant {which}."),
        "learn_commit": Rule(_became(Position.COMMITTED), "Participant {which} learns that the decision is to commit."),
        "learn_abort": Rule(_became(Position.ABORTED), "Participant {which} learns that the decision is to abort."),
    }


def _consistent(state: State) -> bool:
    return not (Position.COMMITTED in state.participants and Position.ABORTED in state.participants)


def _mixed(state: State) -> str:
    committed, aborted = map(state.participants.index, (Position.COMMITTED, Position.ABORTED))
    return f"participant {committed} has committed and participant {aborted} has aborted."


def _all_are(position: Position, state: State) -> bool:
    return state.participants.count(position) == len(state.participants)


def _decided(state: State) -> bool:
    return Position.WORKING not in state.participants and Position.PREPARED not in state.participants
