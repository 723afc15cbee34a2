"""The actions that are enabled in a state: the coordinator's, then those of each task, then the faults."""

from collections.abc import Sequence
from functools import cache

from labkit.sim.model import Action
from labkit.sim.models.barriers.operators import decided, is_blocked
from labkit.sim.models.barriers.state import (
    END,
    ENDED,
    Checkpoint,
    Coordinator,
    Copying,
    OmittedRule,
    Operator,
    Settings,
    State,
    taking,
)

_OF_THE_JOB = ("trigger", "copy", "announce", "crash", "cancel", "restore")
_NUMBERED = ("complete", "expire", "store", "read", "inject", "finish", "process", "take_barrier", "take_end")
"""The names of the actions that concern one checkpoint, task or channel, and have its number."""


class Schedule:
    """Computes which actions of coordinator and tasks, and which faults, are possible in a state, in a fixed order."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        everyone, sink = (1 << settings.tasks) - 1, 1 << settings.tasks - 1
        self._needed = sink if settings.broken is OmittedRule.SINK_ACK else everyone
        self._stands = settings.copying is Copying.STANDING
        self._alone = {name: Action(name) for name in _OF_THE_JOB}
        self._of = {name: [Action(name, which) for which in range(64)] for name in _NUMBERED}
        self._trigger = self._alone["copy" if settings.broken is OmittedRule.SINK_OFFSET else "trigger"]
        self._all_ended = END * settings.counts
        self._announce, self._crash = self._alone["announce"], self._alone["crash"]
        self._checkpoints, self._concurrent = settings.checkpoints, settings.concurrent
        self._injects = self._of["inject"][: settings.tasks]
        self._goes_on = [
            [*[self._of["read"][which]] * length, self._of["finish"][which]]
            for which, length in enumerate(settings.lengths)
        ]
        # A search meets the same task in very many states of the job.
        self._of_operator = cache(self._operator_actions)

    def actions(self, state: State) -> Sequence[Action]:
        """Return the actions that are possible in a state; none if the job has ended."""
        coordinator, _, operators, _, _, (crashes, _, cancels) = state
        if not coordinator.running:
            return [self._alone["restore"]]
        has_all = operators[-1].at == self._all_ended
        if has_all and is_over(self.settings, state):
            return []
        enabled: list[Action] = []
        self._coordinator_actions(state, enabled)
        self._task_actions(state, enabled)
        if has_all and coordinator.pending and operators[-1].done < coordinator.pending[-1].id:
            enabled.append(self._injects[-1])
        if crashes:
            enabled.append(self._crash)
        if cancels:
            enabled.append(self._alone["cancel"])
        return enabled

    def _coordinator_actions(self, state: State, enabled: list[Action]) -> None:
        coordinator, sources, _, _, prepared, _ = state
        pending = coordinator.pending
        may_be_due = coordinator.triggered < self._checkpoints or sources[-1].ended
        if may_be_due and len(pending) < self._concurrent and self._is_due(state):
            enabled.append(self._trigger)
        if pending:
            self._checkpoint_actions(state, enabled)
        if prepared and prepared[0][0] <= self.announced(coordinator):
            enabled.append(self._announce)

    def _task_actions(self, state: State, enabled: list[Action]) -> None:
        (_, _, _, pending, _), sources, operators, _, _, _ = state
        latest = pending[-1].id if pending else 0
        busy = _waiting(pending) if self._stands else 0
        for which, (position, epoch, ended) in enumerate(sources):
            if not ended and not busy >> which & 1:
                enabled.append(self._goes_on[which][position])
                if epoch < latest:
                    enabled.append(self._injects[which])
        of_operator = self._of_operator
        for task, operator in enumerate(operators, len(sources)):
            if not busy >> task & 1:
                enabled += of_operator(operator, task)

    def _is_due(self, state: State) -> bool:
        triggered, completed, _, pending, pause = state.coordinator
        if triggered < self.settings.checkpoints and not pause:
            return True
        if pending or not self.settings.transactional or not all(source.ended for source in state.sources):
            return False
        # After the end of the input, one more checkpoint commits the sink's last rows.
        sink, prepared = state.operators[-1], state.prepared
        if min(sink.at) < ENDED:
            return self.settings.broken is not OmittedRule.SINK_OFFSET
        return sink.state != sink.sealed or (bool(prepared) and prepared[-1][0] > decided(completed))

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
        return not self._needed & ~checkpoint.acked

    def announced(self, coordinator: Coordinator) -> int:
        """Return the id of the checkpoint that the coordinator announces to the sink, or 0 if there is none.

        This is the latest checkpoint that is stored as complete. With `broken=announce_first`, a checkpoint need not be
        stored: it is enough that all tasks have acknowledged it.
        """
        if self.settings.broken is OmittedRule.ANNOUNCE_FIRST:
            full = [checkpoint.id for checkpoint in coordinator.pending if self._is_complete(checkpoint)]
            return max(full, default=decided(coordinator.completed))
        return decided(coordinator.completed)

    def _operator_actions(self, operator: Operator, task: int) -> tuple[Action, ...]:
        settings, offered = self.settings, []
        first = (task - settings.sources) * settings.sources
        for into, queue in enumerate(operator.inputs):
            if queue and not is_blocked(settings.rules, operator, into):
                offered.append(self._of[taking(queue[0])][first + into])
        return tuple(offered)


def _waiting(pending: tuple[Checkpoint, ...]) -> int:
    waiting = 0
    for checkpoint in pending:
        waiting |= checkpoint.taken & ~checkpoint.acked
    return waiting


def is_over(settings: Settings, state: State) -> bool:
    """Return whether the job has ended: all inputs of the sink have ended, and all the sink's rows are visible."""
    sink = state.operators[-1]
    if not state.coordinator.running or min(sink.at) < ENDED:
        return False
    return not settings.transactional or (sink.state == sink.sealed and not state.prepared)
