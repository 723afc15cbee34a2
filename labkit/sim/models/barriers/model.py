"""Asynchronous barrier snapshots: sources with offsets, counts with several inputs, a sink, and their coordinator.

Sources put barriers into their channels; a task that has received them copies its state and passes them on; when
every task has acknowledged its copy the coordinator stores the checkpoint, and only then announces it. A crash takes
the whole job; a restart loads the latest complete checkpoint, commits what it decided, aborts what it did not, and
reads on from its offsets (Carbone et al., Lightweight Asynchronous Snapshots, 2015; Flink's CheckpointCoordinator).
This module must not judge: see `claims`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import ClassVar

from labkit.sim.model import Action, Property, crash
from labkit.sim.models.barriers.checkpoints import (
    committed,
    completed,
    copied_now,
    opened,
    restored,
    with_checkpoint,
    with_pending,
)
from labkit.sim.models.barriers.claims import claims
from labkit.sim.models.barriers.narration import text
from labkit.sim.models.barriers.operators import TaskStep, copy
from labkit.sim.models.barriers.parts import Coordinator, Faults, State, as_state
from labkit.sim.models.barriers.schedule import Schedule
from labkit.sim.models.barriers.settings import PARAMETERS, VERSION, OmittedRule
from labkit.sim.models.barriers.tasks import Tasks
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule

READS = ("process", "take_barrier", "take_end")
"""The actions that take the next item of a channel."""


class Barriers(Tasks):
    """A job that takes checkpoints and can die at any step."""

    name, version, parameters = "barriers", VERSION, PARAMETERS
    row = "operators"

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.schedule = Schedule(self.settings)
        # Remembered for the same reason as what the tasks do: few values, and very many states.
        self._completed = cache(partial(completed, self.settings))
        self._crashed: Callable[[Coordinator], Coordinator] = cache(crash)
        self._spent = cache(_with_a_crash_less)
        # Every field of a task is volatile, so that all dead ones are alike.
        started = self.initial()
        self._dead = (tuple(map(crash, started.sources)), tuple(map(crash, started.operators)))
        self._claims = claims(self.settings, self.text)

    def initial(self) -> State:
        """A job that was started from nothing."""
        return restored(self.settings, Coordinator(), None, 0, self.settings.faults)

    def actions(self, state: State) -> Sequence[Action]:
        """The coordinator's actions, then those of every task, then what can go wrong."""
        return self.schedule.actions(state)

    def apply(self, state: State, action: Action) -> State:
        """One rule."""
        name, which = action
        after = self._effects[name](state, which)
        return _paced(after, action) if after[0].pause else after

    # Sources.

    # Counts and the sink.

    # The coordinator.

    def _trigger(self, state: State, _: int) -> State:
        coordinator = state.coordinator
        checkpoint = opened(self.settings, coordinator.triggered + 1, state.sources, state.operators)
        return as_state((with_checkpoint(coordinator, checkpoint), *state[1:]))

    def _copy(self, state: State, _: int) -> State:
        """No barrier: the checkpoint is complete at once."""
        checkpoint = copied_now(self.settings, state.coordinator.triggered + 1, state.operators)
        state = state._replace(coordinator=with_checkpoint(state.coordinator, checkpoint))
        sink, rows = copy(state.operators[-1], checkpoint.id, is_sink=True)
        state = self._report(
            state, self.settings.counts * len(self._logs), TaskStep(sink, sealed=rows, copied=checkpoint.id)
        )
        return self._complete(state, checkpoint.id)

    def _store(self, state: State, task: int) -> State:
        """The oldest copy of a task is stored and acknowledged."""
        pending, bit = state.coordinator.pending, 1 << task
        number = next(checkpoint.id for checkpoint in pending if checkpoint.taken & ~checkpoint.acked & bit)
        return state._replace(coordinator=self._finished(state.coordinator, number, task, is_stored=True))

    def _complete(self, state: State, number: int) -> State:
        """The checkpoint is stored: the decision."""
        return as_state((self._completed(state.coordinator, number), *state[1:]))

    def _announce(self, state: State, _: int) -> State:
        """The notification reaches the sink, which commits everything up to the checkpoint."""
        visible, prepared = committed(state.visible, state.prepared, self.schedule.announced(state.coordinator))
        return state._replace(visible=visible, prepared=prepared)

    def _expire(self, state: State, number: int) -> State:
        """The coordinator gives a checkpoint up, and the job goes on; a sealed transaction commits with a later one."""
        coordinator, prepared, faults = state.coordinator, state.prepared, state.faults
        if self.settings.broken is OmittedRule.ABORT_EXPIRED:
            prepared = tuple(transaction for transaction in prepared if transaction[0] != number)
        left = [checkpoint for checkpoint in coordinator.pending if checkpoint.id != number]
        return state._replace(
            coordinator=with_pending(coordinator, left),
            prepared=prepared,
            faults=faults._replace(expiries=faults.expiries - 1),
        )

    # The job dies and comes back.

    def _crash(self, state: State, _which: int) -> State:
        coordinator, _, _, visible, prepared, faults = state
        sources, operators = self._dead
        return as_state((self._crashed(coordinator), sources, operators, visible, prepared, self._spent(faults)))

    def _cancel(self, state: State, _which: int) -> State:
        """Somebody cancels the job; unlike after a crash its checkpoints may be deleted."""
        coordinator, _, _, visible, prepared, faults = state
        down = self._crashed(coordinator)
        if not self.settings.keeps_cancelled:
            down = down._replace(completed=())
        sources, operators = self._dead
        return State(down, sources, operators, visible, prepared, faults._replace(cancels=faults.cancels - 1))

    def _restore(self, state: State, _: int) -> State:
        """The latest complete checkpoint is loaded; what it decided is committed, everything later is aborted."""
        coordinator, kept = state.coordinator, state.coordinator.completed
        which = 0 if self.settings.broken is OmittedRule.OLDER_CHECKPOINT else -1
        loaded = kept[which] if kept else None
        visible, _aborted = committed(state.visible, state.prepared, loaded.id if loaded else 0)
        return restored(self.settings, coordinator, loaded, visible, state.faults)

    def properties(self) -> Sequence[Property[State]]:
        """What must hold of every checkpoint, on the way to it, and in the end."""
        return self._claims

    def text(self, state: State) -> str:
        """Coordinator, tasks, channels, rows."""
        return text(self.settings, state)

    def words(self, action: Action) -> Mapping[str, object]:
        """Both ends of a channel, or the task, by the number that an action names them with."""
        name, which = action
        settings = self.settings
        receiver = sender = task = ""
        if name in READS:
            reader, into = settings.channels[which]
            receiver = settings.task(settings.sources + reader)
            is_count = reader < settings.counts
            sender = settings.task(into if is_count else settings.sources + into)
        elif which >= 0:
            task = settings.task(which)
        return {"task": task, "receiver": receiver, "sender": sender}

    def template(self, action: Action) -> str:
        """The rule's sentence; that of the sink, which nobody sends a barrier any more, is another one."""
        if action == ("inject", self.settings.tasks - 1):
            return "The sink copies its state: its inputs have ended, so that the coordinator has to ask it itself."
        return super().template(action)

    def sentence(self, action: Action) -> str:
        """What happens, with a capital letter for whoever acts."""
        sentence = super().sentence(action)
        return sentence[0].upper() + sentence[1:]

    rules: ClassVar[dict[str, Rule[State]]] = {
        "trigger": Rule(_trigger, "The coordinator triggers a checkpoint: every source is asked for a barrier."),
        "copy": Rule(
            _copy,
            "No barrier: the coordinator copies every state at once, with the offsets after the sink's last rows.",
        ),
        "complete": Rule(
            _complete, "The coordinator has every part of checkpoint {which} and stores it: the decision."
        ),
        "expire": Rule(
            _expire,
            "Checkpoint {which} takes too long; the coordinator gives it up, and the job goes on.",
            Event.TIMEOUT,
        ),
        "store": Rule(_store, "The copy of {task} is stored and acknowledged."),
        "announce": Rule(_announce, "The sink is told which checkpoint is complete, and commits everything up to it."),
        "crash": Rule(
            _crash,
            "The job dies: the memory of all tasks is gone, channels included, and so is every pending checkpoint.",
            Event.CRASH,
        ),
        "cancel": Rule(_cancel, "Somebody cancels the job.", Event.OPERATOR),
        "restore": Rule(
            _restore,
            "The job starts from the latest complete checkpoint, or from nothing; its sources read on from there.",
            Event.RESTART,
        ),
    }


def _with_a_crash_less(faults: Faults) -> Faults:
    return faults._replace(crashes=faults.crashes - 1)


_STEPS = ("read", "inject", "finish", "process", "take_barrier", "take_end")


def _paced(state: State, action: Action) -> State:
    """The minimum pause passes with the steps of the tasks."""
    coordinator = state.coordinator
    passed = action.name in _STEPS
    return state._replace(coordinator=coordinator._replace(pause=coordinator.pause - 1)) if passed else state
