"""What can happen in a state: the coordinator's actions, then those of every task, then what goes wrong.

This module must not change a state.
"""

from collections.abc import Sequence
from functools import cache

from labkit.sim.barriers.checkpoints import Pending, decided
from labkit.sim.barriers.operators import is_blocked
from labkit.sim.barriers.parts import BARRIER, ENDED, Checkpoint, Coordinator, Operator, Source, State
from labkit.sim.barriers.settings import Broken, Copying, Settings
from labkit.sim.barriers.telling import SENTENCES
from labkit.sim.model import Action


class Schedule:
    """The enabled actions of one configuration, always in the same order."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._everyone = (1 << settings.tasks) - 1
        self._stands = settings.copying is Copying.STANDING
        self._alone = {name: Action(name) for name in SENTENCES}
        self._of = {name: [Action(name, which) for which in range(64)] for name in SENTENCES}
        self._trigger = self._alone["copy" if settings.broken is Broken.SINK_OFFSET else "trigger"]
        self._end = Action("inject", settings.tasks - 1)
        # A search meets the same task in very many states of the job.
        self._of_source, self._of_operator = cache(self._source_actions), cache(self._operator_actions)

    def actions(self, state: State) -> Sequence[Action]:
        """What is enabled; nothing: the job has ended."""
        coordinator, sources, operators, _, prepared, faults = state
        _, completed, running, pending, _ = coordinator
        if not running:
            return [self._alone["restore"]]
        sink = operators[-1]
        has_all = min(sink.at) == ENDED
        if has_all and is_over(self.settings, state):
            return []
        enabled: list[Action] = []
        if len(pending) < self.settings.concurrent and self._may_trigger(state):
            enabled.append(self._trigger)
        if pending:
            self._checkpoint_actions(state, enabled)
        if prepared and prepared[0][0] <= self.announced(coordinator):
            enabled.append(self._alone["announce"])
        latest = pending[-1].id if pending else 0
        busy = _waiting(pending) if self._stands else 0
        for which, source in enumerate(sources):
            if not busy >> which & 1:
                enabled += self._of_source(source, which, latest)
        busy >>= len(sources)
        for which, operator in enumerate(operators):
            if not busy >> which & 1:
                enabled += self._of_operator(operator, which)
        if has_all and sink.done < latest:
            enabled.append(self._end)
        if faults.crashes:
            enabled.append(self._alone["crash"])
        if faults.cancels:
            enabled.append(self._alone["cancel"])
        return enabled

    def _may_trigger(self, state: State) -> bool:
        """Whether another checkpoint is due: one more after the end of the input, if the sink has to commit."""
        triggered, completed, _, pending, pause = state.coordinator
        if triggered < self.settings.checkpoints and not pause:
            return True
        if pending or not self.settings.transactional or not all(source.ended for source in state.sources):
            return False
        sink, prepared = state.operators[-1], state.prepared
        is_open = min(sink.at) < ENDED or sink.state != sink.sealed
        return is_open or (bool(prepared) and prepared[-1][0] > decided(completed))

    def _checkpoint_actions(self, state: State, enabled: list[Action]) -> None:
        pending, expiries = state.coordinator.pending, state.faults.expiries
        for checkpoint in pending:
            if self._is_complete(checkpoint):
                enabled.append(self._of["complete"][checkpoint.id])
            if expiries:
                enabled.append(self._of["expire"][checkpoint.id])
        if waiting := _waiting(pending):
            enabled += [self._of["store"][task] for task in range(self.settings.tasks) if waiting >> task & 1]

    def _is_complete(self, checkpoint: Checkpoint) -> bool:
        missing = self._everyone & ~checkpoint.acked
        return not missing or (self.settings.broken is Broken.MISSING_ACK and not missing & missing - 1)

    def announced(self, coordinator: Coordinator) -> int:
        """Up to which checkpoint the sink is told to commit."""
        if self.settings.broken is Broken.ANNOUNCE_FIRST:
            full = [checkpoint.id for checkpoint in coordinator.pending if self._is_complete(checkpoint)]
            return max(full, default=decided(coordinator.completed))
        return decided(coordinator.completed)

    def _source_actions(self, source: Source, which: int, latest: int) -> tuple[Action, ...]:
        position, epoch, ended = source
        if ended:
            return ()
        goes_on = self._of["read" if position < self.settings.lengths[which] else "finish"][which]
        return (goes_on, self._of["inject"][which]) if epoch < latest else (goes_on,)

    def _operator_actions(self, operator: Operator, which: int) -> tuple[Action, ...]:
        settings, offered = self.settings, []
        for into, queue in enumerate(operator.inputs):
            if queue and not is_blocked(settings.barriers, operator, into):
                item = queue[0]
                name = "process" if item < BARRIER else "take_end" if item == ENDED else "take_barrier"
                offered.append(self._of[name][which * settings.sources + into])
        return tuple(offered)


def _waiting(pending: Pending) -> int:
    """The tasks that have a copy which is not stored, as bits."""
    waiting = 0
    for checkpoint in pending:
        waiting |= checkpoint.taken & ~checkpoint.acked
    return waiting


def is_over(settings: Settings, state: State) -> bool:
    """Whether the job has ended: nothing more will come, and the sink has nothing that is not visible."""
    sink = state.operators[-1]
    if not state.coordinator.running or min(sink.at) < ENDED:
        return False
    return not settings.transactional or (sink.state == sink.sealed and not state.prepared)
