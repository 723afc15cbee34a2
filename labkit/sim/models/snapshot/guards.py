"""Which actions of the bank are enabled: transfers, the steps of the chosen snapshot algorithm, and what may go wrong.

This module must not change a state.
"""

from collections.abc import Sequence

from labkit.core.errors import InvalidInput
from labkit.sim.model import Action
from labkit.sim.models.snapshot.parts import AMOUNT, Process, State, ends
from labkit.sim.models.snapshot.settings import MARKERS, NAIVE, STOP
from labkit.sim.parameters import Values
from labkit.sim.rules import RuleModel

_BELONGS_TO = {"forget_channels": MARKERS, "late_markers": MARKERS, "forget_pause": STOP, "forget_drain": STOP}
"""The algorithm that has the rule."""


class Guards(RuleModel[State]):
    """The questions that decide what may happen next in a bank."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.count, self.algorithm, self.broken = (int(values["processes"]), values["algorithm"], values["broken"])
        owner = _BELONGS_TO.get(str(self.broken), self.algorithm)
        if owner != self.algorithm:
            raise InvalidInput(f"broken={self.broken}: {self.algorithm} has no such rule; set algorithm={owner}.")
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
        """What every process can do, then what every channel can, then the restore."""
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
        """Stop the world: whether all are paused, or have died after their copy, and nothing is under way.

        Here that is simply seen; real processes would find it out by messages, which take time too.
        """
        ready = all(process.paused or process.part is not None for process in state.processes)
        return ready and (self.broken == "forget_drain" or not any(state.channels))
