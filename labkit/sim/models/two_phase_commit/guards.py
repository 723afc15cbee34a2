"""Which actions of two-phase commit are enabled: the coordinator's, each participant's, and those of the queues.

This module must not change a state.
"""

from collections.abc import Sequence

from labkit.sim.model import Action
from labkit.sim.models.two_phase_commit.parts import Message, Phase, State
from labkit.sim.parameters import Values
from labkit.sim.rules import RuleModel


class Guards(RuleModel[State]):
    """The questions that decide what may happen next to a coordinator and its participants."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.count = int(values["participants"])
        self.everyone = (1 << self.count) - 1
        self.broken = values["broken"]
        self.coordinator_returns = bool(values["coordinator_returns"])
        self._of = {name: [Action(name, which) for which in range(self.count)] for name in self.rules}
        self._alone = {name: Action(name) for name in self.rules}

    def actions(self, state: State) -> Sequence[Action]:
        """The coordinator's actions, then those of every participant and its two queues."""
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
