"""What sources, counts and the sink do: read, put barriers into channels, take what is next, copy their states.

This module must not know when the coordinator triggers or completes a checkpoint.
"""

from functools import cache, partial
from itertools import repeat
from typing import ClassVar

from labkit.sim.models.barriers.checkpoints import excused, finished, logged, noted
from labkit.sim.models.barriers.operators import TaskStep, arrive, copy, overtake, take
from labkit.sim.models.barriers.parts import BARRIER, END, ENDED, Coordinator, Operator, Source, State, as_state, once
from labkit.sim.models.barriers.settings import Copying, settings
from labkit.sim.parameters import Values
from labkit.sim.rules import Rule, RuleModel


class Tasks(RuleModel[State]):
    """The tasks of one job, and what the coordinator learns from them."""

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
        # What one process does is worked out once: a search meets it in very many states of the job.
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
        """A source puts its oldest barrier that is still wanted into its channels."""
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
        """A barrier goes to every count."""
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
        """A barrier overtakes, and the records that it leaves behind are saved."""
        after, records = self._overtake(operator, into, barrier)
        if records and self.settings.rules.saves:
            coordinator = self._logged(coordinator, barrier[0] - BARRIER, channel, records)
        return coordinator, after

    def _seal_last(self, state: State) -> State:
        """All inputs of the sink have ended, so that no barrier can come: the coordinator asks the sink itself."""
        sink = state.operators[-1]
        wanted = next(checkpoint.id for checkpoint in state.coordinator.pending if checkpoint.id > sink.done)
        after, rows = copy(sink, wanted, is_sink=True)
        taken = TaskStep(after, sealed=rows, copied=wanted, whole=wanted)
        return self._report(state, self.settings.counts * len(self._logs), taken)

    def _finish(self, state: State, which: int) -> State:
        """The end of the input goes into every channel, and counts as every later barrier."""
        coordinator, sources, operators, visible, prepared, faults = state
        operators = (*map(self._arrive, operators[:-1], repeat(which), repeat(END)), operators[-1])
        if coordinator.pending:
            position, epoch, _ = sources[which]
            coordinator = self._excused(coordinator, epoch, which, position)
        sources = self._ended(sources, which)
        return as_state((coordinator, sources, operators, visible, prepared, faults))

    def _process(self, state: State, channel: int) -> State:
        """A task takes what is next in a channel, a record or a barrier or an end, and passes on what it has to."""
        coordinator, sources, operators, visible, prepared, faults = state
        which, into = self._channels[channel]
        after, sent, _, _, _, _, ended, reports = taken = self._takes[which](operators[which], into)
        if reports or (ended and coordinator.pending):
            return self._report(state, channel, taken)
        if which < self._sink:
            sink = self._arrive(operators[-1], which, sent) if sent else operators[-1]
            operators = (*operators[:which], after, *operators[which + 1 : -1], sink)
        else:
            operators = (*operators[:-1], after)
            if self._appends and sent and sent[0] < BARRIER:
                visible += once(sent[0])
        return as_state((coordinator, sources, operators, visible, prepared, faults))

    def _report(self, state: State, channel: int, taken: TaskStep) -> State:
        """A task takes what is next, and the coordinator learns of a copy, of saved records, or of the task's end."""
        coordinator, sources, operators, visible, prepared, faults = state
        which, _ = self._channels[channel]
        after, sent, sealed, copied, whole, number, ended, _ = taken
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
        return as_state((coordinator, sources, operators, visible, prepared, faults))

    def _to_sink(
        self, coordinator: Coordinator, sink: Operator, count: int, items: bytes
    ) -> tuple[Coordinator, Operator]:
        """A count passes on a record, or a barrier, or its end, or both of these."""
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
