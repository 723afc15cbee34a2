"""A simulator of asynchronous barrier snapshots: sources with offsets, counting tasks, a sink, and a coordinator.

Sources put barriers into their channels. A task that has received a barrier from each of its channels copies its state
and passes the barrier on. When every task has acknowledged its copy, the coordinator stores the checkpoint, and only
then announces it. A crash stops the whole job. A restart loads the latest complete checkpoint, commits the transactions
that it covers, aborts the others, and reads on from its offsets (Carbone et al., Lightweight Asynchronous Snapshots,
2015; Flink's CheckpointCoordinator).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import repeat
from typing import ClassVar

from labkit.sim.model import Action, Property, crash
from labkit.sim.models.barriers.claims import claims, text
from labkit.sim.models.barriers.operators import (
    TaskStep,
    arrive,
    committed,
    completed,
    copied_now,
    copy,
    excused,
    finished,
    logged,
    noted,
    opened,
    overtake,
    restored,
    take,
    with_checkpoint,
    with_pending,
)
from labkit.sim.models.barriers.schedule import Schedule
from labkit.sim.models.barriers.state import (
    BARRIER,
    END,
    ENDED,
    PARAMETERS,
    Coordinator,
    Copying,
    OmittedRule,
    Operator,
    Source,
    State,
    as_state,
    once,
    settings,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel, one_less


class Tasks(RuleModel[State]):
    """The part of the simulator that contains the steps of tasks: read, count, send on, and copy their state."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        chosen = self.settings = settings(values)
        self._sink = chosen.counts
        self._appends = not chosen.transactional
        self._overtakes = chosen.rules.overtakes
        self._at_once = chosen.copying is Copying.INSTANT
        self._channels = chosen.channels
        self._logs = [
            [(chosen.readers[record], bytes((record,))) for record in range(source, len(chosen.words), chosen.sources)]
            for source in range(chosen.sources)
        ]
        # Steps of one process are cached, because a search meets each in very many states of the job.
        self._arrive, self._overtake = cache(arrive), cache(overtake)
        self._read_on, self._ended = cache(self._moved), cache(self._at_end)
        self._noted, self._finished = cache(noted), cache(finished)
        self._logged, self._excused = cache(logged), cache(excused)
        count, sink = (cache(partial(take, chosen.rules, is_sink=is_sink)) for is_sink in (False, True))
        self._takes = [count] * chosen.counts + [sink]

    def _read(self, state: State, which: int) -> State:
        coordinator, sources, operators, visible, prepared, faults = state
        count, item = self._logs[which][sources[which].position]
        reader = self._arrive(operators[count], which, item)
        operators = (*operators[:count], reader, *operators[count + 1 :])
        sources = self._read_on(sources, which)
        return as_state((coordinator, sources, operators, visible, prepared, faults))

    @staticmethod
    def _moved(sources: tuple[Source, ...], which: int) -> tuple[Source, ...]:
        position, epoch, ended = sources[which]
        return (*sources[:which], Source(position + 1, epoch, ended), *sources[which + 1 :])

    @staticmethod
    def _at_end(sources: tuple[Source, ...], which: int) -> tuple[Source, ...]:
        position, epoch, _ = sources[which]
        return (*sources[:which], Source(position, epoch, ended=True), *sources[which + 1 :])

    def _inject(self, state: State, task: int) -> State:
        coordinator, sources, operators, visible, prepared, faults = state
        if task >= len(sources):
            return self._seal_last(state)
        position, epoch, ended = sources[task]
        wanted = next(checkpoint.id for checkpoint in coordinator.pending if checkpoint.id > epoch)
        coordinator = self._noted(coordinator, wanted, task, position)
        coordinator = self._finished(coordinator, wanted, task, self._at_once)
        coordinator, operators = self._to_counts(coordinator, operators, task, wanted)
        sources = (*sources[:task], Source(position, wanted, ended), *sources[task + 1 :])
        return as_state((coordinator, sources, operators, visible, prepared, faults))

    def _to_counts(
        self, coordinator: Coordinator, operators: tuple[Operator, ...], source: int, number: int
    ) -> tuple[Coordinator, tuple[Operator, ...]]:
        reached, barrier = [], bytes((BARRIER + number,))
        for count, operator in enumerate(operators[:-1]):
            if self._overtakes:
                channel = count * len(self._logs) + source
                coordinator, after = self._ahead(coordinator, operator, source, barrier, channel)
            else:
                after = self._arrive(operator, source, barrier)
            reached.append(after)
        return coordinator, (*reached, operators[-1])

    def _ahead(
        self, coordinator: Coordinator, operator: Operator, into: int, barrier: bytes, channel: int
    ) -> tuple[Coordinator, Operator]:
        after, records = self._overtake(operator, into, barrier)
        if records and self.settings.rules.saves:
            coordinator = self._logged(coordinator, barrier[0] - BARRIER, channel, records)
        return coordinator, after

    def _seal_last(self, state: State) -> State:
        """Return the state after the sink has copied its state without a barrier, at the coordinator's request.

        All inputs of the sink have ended, so no barrier can reach it any more.
        """
        sink = state.operators[-1]
        wanted = next(checkpoint.id for checkpoint in state.coordinator.pending if checkpoint.id > sink.done)
        after, rows = copy(sink, wanted, is_sink=True)
        taken = TaskStep(after, sealed=rows, copied=wanted, whole=wanted)
        return self._report(state, self.settings.counts * len(self._logs), taken)

    def _finish(self, state: State, which: int) -> State:
        coordinator, sources, operators, visible, prepared, faults = state
        # Tasks treat the end of an input as if every later barrier had also arrived.
        operators = (*map(self._arrive, operators[:-1], repeat(which), repeat(END)), operators[-1])
        if coordinator.pending:
            position, epoch, _ = sources[which]
            coordinator = self._excused(coordinator, epoch, which, position)
        sources = self._ended(sources, which)
        return as_state((coordinator, sources, operators, visible, prepared, faults))

    def _process(self, state: State, channel: int) -> State:
        which, into = self._channels[channel]
        return self._report(state, channel, self._takes[which](state.operators[which], into))

    def _report(self, state: State, channel: int, taken: TaskStep) -> State:
        coordinator, sources, operators, visible, prepared, faults = state
        which, _ = self._channels[channel]
        after, sent, sealed, copied, whole, number, ended = taken
        task = len(sources) + which
        if copied:
            coordinator = self._noted(coordinator, copied, task, after.state)
        if whole:
            coordinator = self._finished(coordinator, whole, task, self._at_once)
        if number:
            coordinator = self._logged(coordinator, number, channel, sent)
        if sealed and not self._appends:
            prepared = (*prepared, (copied, sealed))
        # A task whose inputs have all ended ends too; a sink that has to commit waits for one more checkpoint.
        if ended and (which < self._sink or self._appends):
            coordinator = self._excused(coordinator, after.done, task, after.state)
        operators = (*operators[:which], after, *operators[which + 1 :])
        if which < self._sink and sent:
            coordinator, sink = self._to_sink(coordinator, operators[-1], which, sent)
            operators = (*operators[:-1], sink)
        elif self._appends and sent and sent[0] < BARRIER:
            visible += once(sent[0])
        return as_state((coordinator, sources, operators, visible, prepared, faults))

    def _to_sink(
        self, coordinator: Coordinator, sink: Operator, count: int, items: bytes
    ) -> tuple[Coordinator, Operator]:
        if self._overtakes and BARRIER <= items[0] < ENDED:
            channel = self._sink * len(self._logs) + count
            coordinator, sink = self._ahead(coordinator, sink, count, items[:1], channel)
            items = items[1:]
        return coordinator, self._arrive(sink, count, items) if items else sink

    rules: ClassVar[dict[str, Rule[State]]] = {
        "read": Rule(_read, "{task} reads the next record of its log and sends it to the count of its word."),
        "inject": Rule(_inject, "{task} notes its offset for the checkpoint and puts the barrier into its channels."),
        "finish": Rule(_finish, "{task} has read its whole log and says so on every channel."),
        "process": Rule(_process, "{receiver} takes a record from {sender}."),
        "take_barrier": Rule(_process, "{receiver} takes a barrier from {sender}."),
        "take_end": Rule(_process, "{receiver} learns that nothing more comes from {sender}."),
    }


READS = ("process", "take_barrier", "take_end")
"""The actions by which a task takes the next item of a channel."""

_STEPS = ("read", "inject", "finish", *READS)
"""The actions of tasks; each of them shortens the pause before the next checkpoint by one step."""


class Barriers(Tasks):
    """The simulator of a streaming job that can crash at any step, with checkpoints by barriers as in Flink."""

    name, version, parameters = "barriers", 1, PARAMETERS
    row = "operators"

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.schedule = Schedule(self.settings)
        # Cached for the same reason as the steps of tasks.
        self._completed = cache(partial(completed, self.settings))
        self._crashed: Callable[[Coordinator], Coordinator] = cache(crash)
        self._spent = cache(partial(one_less, fault="crashes"))
        # Every field of a task is volatile, so all dead tasks are alike.
        started = self.initial()
        self._dead = (tuple(map(crash, started.sources)), tuple(map(crash, started.operators)))
        self._claims = claims(self.settings)

    def initial(self) -> State:
        """Return the state of a job that starts without a checkpoint."""
        return restored(self.settings, Coordinator(), None, 0, self.settings.faults)

    def actions(self, state: State) -> Sequence[Action]:
        return self.schedule.actions(state)

    def apply(self, state: State, action: Action) -> State:
        """Return the state after an action. A task's step also shortens the pause before the next checkpoint."""
        name, which = action
        after = self._effects[name](state, which)
        coordinator = after[0]
        if coordinator.pause and name in _STEPS:
            return after._replace(coordinator=coordinator._replace(pause=coordinator.pause - 1))
        return after

    # The coordinator.

    def _trigger(self, state: State, _: int) -> State:
        coordinator = state.coordinator
        checkpoint = opened(self.settings, coordinator.triggered + 1, state.sources, state.operators)
        return as_state((with_checkpoint(coordinator, checkpoint), *state[1:]))

    def _copy(self, state: State, _: int) -> State:
        """Return the state after a checkpoint that copies all task states at one moment, without barriers.

        This step happens only with `broken=sink_offset`, to show that the sink's position does not say where the
        sources must resume.
        """
        checkpoint = copied_now(self.settings, state.coordinator.triggered + 1, state.operators)
        state = state._replace(coordinator=with_checkpoint(state.coordinator, checkpoint))
        sink, rows = copy(state.operators[-1], checkpoint.id, is_sink=True)
        state = self._report(
            state, self.settings.counts * len(self._logs), TaskStep(sink, sealed=rows, copied=checkpoint.id)
        )
        return self._complete(state, checkpoint.id)

    def _store(self, state: State, task: int) -> State:
        pending, bit = state.coordinator.pending, 1 << task
        number = next(checkpoint.id for checkpoint in pending if checkpoint.taken & ~checkpoint.acked & bit)
        return state._replace(coordinator=self._finished(state.coordinator, number, task, is_stored=True))

    def _complete(self, state: State, number: int) -> State:
        return as_state((self._completed(state.coordinator, number), *state[1:]))

    def _announce(self, state: State, _: int) -> State:
        visible, prepared = committed(state.visible, state.prepared, self.schedule.announced(state.coordinator))
        return state._replace(visible=visible, prepared=prepared)

    def _expire(self, state: State, number: int) -> State:
        coordinator, prepared, faults = state.coordinator, state.prepared, state.faults
        if self.settings.broken is OmittedRule.ABORT_EXPIRED:  # a kept transaction is committed by a later checkpoint
            prepared = tuple(transaction for transaction in prepared if transaction[0] != number)
        left = [checkpoint for checkpoint in coordinator.pending if checkpoint.id != number]
        return state._replace(
            coordinator=with_pending(coordinator, left), prepared=prepared, faults=one_less(faults, "expiries")
        )

    # The job dies and restarts.

    def _crash(self, state: State, _which: int) -> State:
        coordinator, _, _, visible, prepared, faults = state
        sources, operators = self._dead
        return as_state((self._crashed(coordinator), sources, operators, visible, prepared, self._spent(faults)))

    def _cancel(self, state: State, _which: int) -> State:
        coordinator, _, _, visible, prepared, faults = state
        down = self._crashed(coordinator)
        if not self.settings.keeps_cancelled:  # unlike a crash, a cancellation may delete the checkpoints
            down = down._replace(completed=())
        sources, operators = self._dead
        return State(down, sources, operators, visible, prepared, one_less(faults, "cancels"))

    def _restore(self, state: State, _: int) -> State:
        coordinator, kept = state.coordinator, state.coordinator.completed
        which = 0 if self.settings.broken is OmittedRule.OLDER_CHECKPOINT else -1
        loaded = kept[which] if kept else None
        visible, _aborted = committed(state.visible, state.prepared, loaded.id if loaded else 0)
        return restored(self.settings, coordinator, loaded, visible, state.faults)

    def properties(self) -> Sequence[Property[State]]:
        return self._claims

    def text(self, state: State) -> str:
        return text(self.settings, state)

    def words(self, action: Action) -> Mapping[str, object]:
        """Return the values of a sentence's placeholders: the task that acts, or a channel's sender and receiver."""
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
        if action == ("inject", self.settings.tasks - 1):
            return "The coordinator asks the sink directly to copy its state, because the sink's inputs have ended."
        return super().template(action)

    def sentence(self, action: Action) -> str:
        """Return the sentence that describes an action, beginning with a capital letter."""
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
        "announce": Rule(
            _announce, "The coordinator announces the latest complete checkpoint; the sink commits everything up to it."
        ),
        "crash": Rule(
            _crash,
            "The job dies: the memory of all tasks is gone, channels included, and so is every pending checkpoint.",
            Event.CRASH,
        ),
        "cancel": Rule(_cancel, "Somebody cancels the job.", Event.OPERATOR),
        "restore": Rule(
            _restore,
            "The job starts from the latest complete checkpoint, or from the beginning; its sources go on from there.",
            Event.RESTART,
        ),
    }
