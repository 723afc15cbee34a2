"""The simulator `two_phase_commit`, in which a learner decides if a recovering participant aborts, commits or waits."""

from collections.abc import Sequence
from typing import ClassVar

from labkit.sim.blueprint import Blueprint, play
from labkit.sim.model import Action, Mood, Property, unless
from labkit.sim.models import two_phase_commit
from labkit.sim.models.two_phase_commit.model import TwoPhaseCommit
from labkit.sim.models.two_phase_commit.state import Entry, Participant, Phase, State
from labkit.sim.open_models.base import ChoiceModel, Question
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule


class OpenRecovery(TwoPhaseCommit, ChoiceModel):
    """The simulator of two-phase commit in which the learner programs what a participant does after a restart."""

    name = "recovery_drill"
    steps = ("return_abort", "return_commit", "return_wait")

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self._returns = [[Action(name, which) for name in self.steps] for which in range(self.count)]

    def actions(self, state: State) -> Sequence[Action]:
        """Return the possible actions; a participant that restarts may abort, commit or wait."""
        enabled: list[Action] = []
        for action in super().actions(state):
            enabled += self._returns[action.which] if action.name == "restart" else [action]
        return enabled

    def question(self, state: State, action: Action) -> Question | None:
        """Return the argument of the learner's function: the log of the participant that restarts.

        Returns None if the simulator decides the action.
        """
        if action.name not in self.steps:
            return None
        return (list(map(str, state.participants[action.which].log)),)

    def _return_abort(self, state: State, which: int) -> State:
        return self._ended(state, which, Entry.ABORT, Phase.ABORTED)

    def _return_commit(self, state: State, which: int) -> State:
        return self._ended(state, which, Entry.COMMIT, Phase.COMMITTED)

    def _ended(self, state: State, which: int, entry: Entry, phase: Phase) -> State:
        log = state.participants[which].log
        return self._become(state, which, Participant(log if log[-1:] == (entry,) else (*log, entry), phase))

    def _return_wait(self, state: State, which: int) -> State:
        return self._become(state, which, Participant(state.participants[which].log, Phase.IN_DOUBT))

    def properties(self) -> Sequence[Property[State]]:
        """Return the properties of two-phase commit, and one more: only a participant that has voted yes may wait."""
        sentence = "A participant that has not voted yes never waits for a decision."
        return (*super().properties(), unless("no_needless_wait", Mood.ALWAYS, sentence, _needless_wait))

    rules: ClassVar[dict[str, Rule[State]]] = {
        "return_abort": Rule(
            _return_abort, "Participant {which} starts again, reads its log, and aborts its part.", Event.RESTART
        ),
        "return_commit": Rule(
            _return_commit, "Participant {which} starts again, reads its log, and commits its part.", Event.RESTART
        ),
        "return_wait": Rule(
            _return_wait,
            "Participant {which} starts again, reads its log, and waits for the decision with its locks held.",
            Event.RESTART,
        ),
    }


def _needless_wait(state: State) -> str:
    for which, (log, phase) in enumerate(state.participants):
        if phase is Phase.IN_DOUBT and log[-1:] != (Entry.PREPARED,):
            entries = ", ".join(log) or "empty"
            return (
                f"participant {which} waits for a decision, although its log ({entries}) does not end with the yes "
                "vote, prepared."
            )
    return ""


BLUEPRINT = Blueprint(
    OpenRecovery,
    "Two-phase commit; your function decides what a participant does after a restart.",
    play,
    facts=two_phase_commit.facts,
    meanings=two_phase_commit.BLUEPRINT.meanings,
)
