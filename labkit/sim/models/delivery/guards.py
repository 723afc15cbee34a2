"""Which actions of the chain are enabled: what every process may do as receiver and as sender, and what may go wrong.

This module must not change a state.
"""

from collections.abc import Sequence

from labkit.sim.model import Action
from labkit.sim.models.delivery.parts import Ids, Message, Stage, State
from labkit.sim.models.delivery.settings import Settings, settings
from labkit.sim.parameters import Values
from labkit.sim.rules import RuleModel


class Guards(RuleModel[State]):
    """The questions that decide what may happen next in a chain."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings: Settings = settings(values)
        self._of = {name: [Action(name, p) for p in range(self.settings.processes)] for name in self.rules}

    def actions(self, state: State) -> Sequence[Action]:
        """Every process as receiver and as sender, then what goes wrong with it and on the way to it."""
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
        """What this process may have under way on its hop."""
        process = state.processes[which]
        if which and self.settings.weak:
            return () if process.output is None else (process.output,)
        return process.outbox[: self.settings.window]

    def _unsent(self, state: State, which: int) -> tuple[Message | None, Message | None]:
        """The oldest record of which nothing is under way, so that its timeout is right, and the oldest of the others.

        That a timeout is right is what a real sender cannot know; here a timeout that is not is a fault of its own.
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
        """Whether this process acknowledges only when everything after it is done."""
        return self.settings.weak and which < self.settings.last

    def _collectable(self, state: State, which: int) -> Ids:
        """The noted ids that may be forgotten: real systems decide by age, here it is known whether that is right."""
        if not self.settings.collects and self.settings.broken != "collect_early":
            return 0
        process = state.processes[which]
        noted = process.ids | process.memory
        return noted if self.settings.broken == "collect_early" else noted & ~_still_to_come(state, which)


def _still_to_come(state: State, which: int) -> Ids:
    """The ids of everything that anybody before this process still has, or that is under way to them or to it."""
    ids = 0
    for process, hop in zip(state.processes[:which], state.hops, strict=False):
        for message in (*process.outbox, *hop.forward, process.held, process.output):
            if message is not None:
                ids |= 1 << message.name
    return ids
