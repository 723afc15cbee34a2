"""Asynchronous barrier snapshots: sources with offsets, counts with several inputs, a sink, and their coordinator.

Sources put barriers into their channels; a task that has received them copies its state and passes them on; when
every task has acknowledged its copy the coordinator stores the checkpoint, and only then announces it. A crash takes
the whole job; a restart loads the latest complete checkpoint, commits what it decided, aborts what it did not, and
reads on from its offsets (Carbone et al., Lightweight Asynchronous Snapshots, 2015; Flink's CheckpointCoordinator).
This module must not judge: see `claims`.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

from labkit.sim.barriers.checkpoints import (
    Pending,
    committed,
    copied_now,
    finished,
    logged,
    noted,
    opened,
    restored,
    stored,
)
from labkit.sim.barriers.claims import claims
from labkit.sim.barriers.operators import arrive, overtake, take
from labkit.sim.barriers.parts import (
    BARRIER,
    END,
    ENDED,
    Checkpoint,
    Coordinator,
    Faults,
    Operator,
    Source,
    State,
    once,
)
from labkit.sim.barriers.schedule import Schedule
from labkit.sim.barriers.settings import VERSION, Broken, Copying, settings
from labkit.sim.barriers.telling import SENTENCES, sentence, text
from labkit.sim.model import Action, Model, Property, crash
from labkit.sim.parameters import Values


class Barriers(Model[State]):
    """A job that takes checkpoints and can die at any step."""

    name, version = "barriers", VERSION

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        chosen = self.settings = settings(values)
        self.schedule = Schedule(chosen)
        self.actions = self.schedule.actions  # type: ignore[method-assign]  # one call less for every state
        self._rules: dict[str, Callable[[State, int], State]] = {name: getattr(self, f"_{name}") for name in SENTENCES}
        self._at_once = chosen.copying is Copying.INSTANT
        self._channels = chosen.channels
        self._logs = [
            [(chosen.readers[record], bytes((record,))) for record in range(source, len(chosen.words), chosen.sources)]
            for source in range(chosen.sources)
        ]
        # What one task does is worked out once: a search meets the same task in very many states of the job.
        self._arrive, self._overtake = cache(arrive), cache(overtake)
        self._take = cache(partial(take, chosen.barriers))
        self._claims = claims(chosen, self.text)

    def initial(self) -> State:
        """A job that was started from nothing."""
        return restored(self.settings, Coordinator(), None, 0, self.settings.faults)

    def actions(self, state: State) -> Sequence[Action]:
        """The coordinator's actions, then those of every task, then what can go wrong."""
        return self.schedule.actions(state)

    def apply(self, state: State, action: Action) -> State:
        """One rule."""
        after = self._rules[action.name](state, action.which)
        return _paced(after, action) if after.coordinator.pause else after

    # Sources.

    def _read(self, state: State, which: int) -> State:
        coordinator, sources, operators, visible, prepared, faults = state
        position, epoch, ended = sources[which]
        count, item = self._logs[which][position]
        sources = (*sources[:which], Source(position + 1, epoch, ended), *sources[which + 1 :])
        reader = self._arrive(operators[count], which, item)
        operators = (*operators[:count], reader, *operators[count + 1 :])
        return State(coordinator, sources, operators, visible, prepared, faults)

    def _inject(self, state: State, task: int) -> State:
        """A source puts its oldest barrier that is still wanted into its channels."""
        pending = state.coordinator.pending
        if task >= len(state.sources):
            return self._seal_last(state)
        position, epoch, ended = state.sources[task]
        wanted = next(checkpoint.id for checkpoint in pending if checkpoint.id > epoch)
        pending = finished(noted(pending, wanted, task, position), wanted, task, stored=self._at_once)
        after = _with_source(state, task, Source(position, wanted, ended), pending)
        return self._to_counts(after, task, bytes((BARRIER + wanted,)))

    def _seal_last(self, state: State) -> State:
        """All inputs of the sink have ended, so that no barrier can come: the coordinator asks the sink itself."""
        inputs, at, done, held, sealed = state.operators[-1]
        wanted = next(checkpoint.id for checkpoint in state.coordinator.pending if checkpoint.id > done)
        return self._copied(state, self.settings.counts, Operator(inputs, at, wanted, held, sealed), wanted, wanted)

    def _finish(self, state: State, which: int) -> State:
        """The end of the input goes into every channel, and counts as every later barrier."""
        position, epoch, _ = state.sources[which]
        pending = _left(state.coordinator.pending, epoch, which, position)
        return self._to_counts(_with_source(state, which, Source(position, epoch, ended=True), pending), which, END)

    def _to_counts(self, state: State, source: int, items: bytes) -> State:
        for count in range(self.settings.counts):
            state = self._passed(state, count, source, items)
        return state

    def _passed(self, state: State, which: int, into: int, items: bytes) -> State:
        """Barriers or an end go into a channel; where barriers overtake, the records that they leave behind are saved."""
        operator, pending = state.operators[which], state.coordinator.pending
        for item in items:
            if self.settings.barriers.overtakes and item < ENDED:
                operator, records = self._overtake(operator, into, bytes((item,)))
                if records and self.settings.barriers.saves:
                    pending = logged(pending, item - BARRIER, which * self.settings.sources + into, records)
            else:
                operator = self._arrive(operator, into, bytes((item,)))
        return _with_operator(state, which, operator, pending)

    # Counts and the sink.

    def _process(self, state: State, channel: int) -> State:
        coordinator, sources, operators, visible, prepared, faults = state
        which, into = self._channels[channel]
        after, sent, _, _, number = self._take(operators[which], into)
        if number:
            coordinator = coordinator._replace(pending=logged(coordinator.pending, number, channel, sent))
        if which < self.settings.counts:
            sink = self._arrive(operators[-1], which, sent)
            operators = (*operators[:which], after, *operators[which + 1 : -1], sink)
        else:
            operators = (*operators[:-1], after)
            if not self.settings.transactional:
                visible += once(sent[0])
        return State(coordinator, sources, operators, visible, prepared, faults)

    def _take_barrier(self, state: State, channel: int) -> State:
        which, into = self._channels[channel]
        after, sent, copied, acked, _ = self._take(state.operators[which], into)
        state = self._copied(state, which, after, copied, acked)
        return self._passed(state, self.settings.counts, which, sent) if which < self.settings.counts else state

    def _take_end(self, state: State, channel: int) -> State:
        """A task whose inputs have all ended ends too; a sink that has to commit waits for one more checkpoint."""
        which, _ = self._channels[channel]
        after = self._take_barrier(state, channel)
        operator = after.operators[which]
        waits = which == self.settings.counts and self.settings.transactional
        if waits or min(operator.at) < ENDED:
            return after
        pending = _left(after.coordinator.pending, operator.done, len(state.sources) + which, operator.state)
        return _with_operator(after, which, operator, pending)

    def _copied(self, state: State, which: int, after: Operator, copied: int, acked: int) -> State:
        """A task may have copied its state, and its part of a checkpoint may be whole. A sink seals its transaction."""
        pending, task = state.coordinator.pending, len(state.sources) + which
        if copied:
            pending = noted(pending, copied, task, after.state)
        if acked:
            pending = finished(pending, acked, task, stored=self._at_once)
        if copied and which == self.settings.counts:
            state, after = self._sealed(state, after, copied)
        return _with_operator(state, which, after, pending)

    def _sealed(self, state: State, sink: Operator, number: int) -> tuple[State, Operator]:
        inputs, at, done, held, sealed = sink
        if self.settings.transactional and held != sealed:
            state = state._replace(prepared=(*state.prepared, (number, held - sealed)))
        return state, Operator(inputs, at, done, held, held)

    # The coordinator.

    def _trigger(self, state: State, _: int) -> State:
        triggered, completed, running, pending, pause = state.coordinator
        pending = (*pending, opened(self.settings, triggered + 1, state))
        return state._replace(coordinator=Coordinator(triggered + 1, completed, running, pending, pause))

    def _copy(self, state: State, _: int) -> State:
        """No barrier: the checkpoint is complete at once."""
        triggered, completed, running, pending, pause = state.coordinator
        checkpoint = copied_now(self.settings, triggered + 1, state)
        state = self._copied(state, self.settings.counts, state.operators[-1], checkpoint.id, 0)
        completed = (*completed, checkpoint)[-self.settings.retained :]
        return state._replace(coordinator=Coordinator(triggered + 1, completed, running, pending, pause))

    def _store(self, state: State, task: int) -> State:
        """The oldest copy of a task is stored and acknowledged."""
        pending, bit = state.coordinator.pending, 1 << task
        number = next(checkpoint.id for checkpoint in pending if checkpoint.taken & ~checkpoint.acked & bit)
        pending = finished(pending, number, task, stored=True)
        return state._replace(coordinator=state.coordinator._replace(pending=pending))

    def _complete(self, state: State, number: int) -> State:
        """The checkpoint is stored: the decision. Older ones that are pending are subsumed."""
        triggered, completed, running, pending, _ = state.coordinator
        [whole] = [checkpoint for checkpoint in pending if checkpoint.id == number]
        completed = (*completed, stored(whole))[-self.settings.retained :]
        left = tuple(checkpoint for checkpoint in pending if checkpoint.id > number)
        return state._replace(coordinator=Coordinator(triggered, completed, running, left, self.settings.min_pause))

    def _announce(self, state: State, _: int) -> State:
        """The notification reaches the sink, which commits everything up to the checkpoint."""
        visible, prepared = committed(state.visible, state.prepared, self.schedule.announced(state.coordinator))
        return state._replace(visible=visible, prepared=prepared)

    def _expire(self, state: State, number: int) -> State:
        """The coordinator gives a checkpoint up, and the job goes on; a sealed transaction commits with a later one."""
        coordinator, prepared, faults = state.coordinator, state.prepared, state.faults
        if self.settings.broken is Broken.ABORT_EXPIRED:
            prepared = tuple(transaction for transaction in prepared if transaction[0] != number)
        left = tuple(checkpoint for checkpoint in coordinator.pending if checkpoint.id != number)
        return state._replace(
            coordinator=coordinator._replace(pending=left),
            prepared=prepared,
            faults=faults._replace(expiries=faults.expiries - 1),
        )

    # The job dies and comes back.

    def _crash(self, state: State, _: int) -> State:
        return _died(state, state.faults._replace(crashes=state.faults.crashes - 1))

    def _cancel(self, state: State, _: int) -> State:
        """Somebody cancels the job; unlike after a crash its checkpoints may be deleted."""
        after = _died(state, state.faults._replace(cancels=state.faults.cancels - 1))
        kept = after.coordinator.completed if self.settings.keeps_cancelled else ()
        return after._replace(coordinator=after.coordinator._replace(completed=kept))

    def _restore(self, state: State, _: int) -> State:
        """The latest complete checkpoint is loaded; what it decided is committed, everything later is aborted."""
        coordinator, completed = state.coordinator, state.coordinator.completed
        which = 0 if self.settings.broken is Broken.OLDER_CHECKPOINT else -1
        loaded = completed[which] if completed else None
        visible, _aborted = committed(state.visible, state.prepared, loaded.id if loaded else 0)
        return restored(self.settings, coordinator, loaded, visible, state.faults)

    def properties(self) -> Sequence[Property[State]]:
        """What must hold of every checkpoint, on the way to it, and in the end."""
        return self._claims

    def text(self, state: State) -> str:
        """Coordinator, tasks, channels, rows."""
        return text(self.settings, state)

    def sentence(self, action: Action) -> str:
        """What happens."""
        return sentence(self.settings, action)


_STEPS = ("read", "inject", "finish", "process", "take_barrier", "take_end")


def _paced(state: State, action: Action) -> State:
    """The minimum pause passes with the steps of the tasks."""
    coordinator = state.coordinator
    passed = action.name in _STEPS
    return state._replace(coordinator=coordinator._replace(pause=coordinator.pause - 1)) if passed else state


def _left(pending: Pending, since: int, task: int, held: int) -> Pending:
    """A task that has ended needs not acknowledge the checkpoints that it has not seen: they get its last state."""
    for checkpoint in pending:
        if checkpoint.id > since:
            pending = finished(noted(pending, checkpoint.id, task, held), checkpoint.id, task, stored=True)
    return pending


def _died(state: State, faults: Faults) -> State:
    coordinator, sources, operators, visible, prepared, _ = state
    dead = tuple(map(crash, operators))
    return State(crash(coordinator), tuple(map(crash, sources)), dead, visible, prepared, faults)


# Built by position: `_replace` would take three times as long, and a state is built for every step of a search.


def _with_source(state: State, which: int, source: Source, pending: Pending) -> State:
    (triggered, completed, running, _, pause), sources, operators, visible, prepared, faults = state
    coordinator = Coordinator(triggered, completed, running, pending, pause)
    sources = (*sources[:which], source, *sources[which + 1 :])
    return State(coordinator, sources, operators, visible, prepared, faults)


def _with_operator(state: State, which: int, operator: Operator, pending: Pending) -> State:
    (triggered, completed, running, _, pause), sources, operators, visible, prepared, faults = state
    coordinator = Coordinator(triggered, completed, running, pending, pause)
    operators = (*operators[:which], operator, *operators[which + 1 :])
    return State(coordinator, sources, operators, visible, prepared, faults)
