"""What a reader saw of a state, the judge's verdict on it, and what is claimed of every state.

Lost, duplicate and early rows are counted by `labkit.core.judge` alone: what one reader handed on becomes a
History here. The claims in the mood "always" speak of the first reader: read_committed, unless read_uncommitted
is alone.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.sim.model import Mood, Property
from labkit.sim.models.kafka_log.coordinator import PREPARED
from labkit.sim.models.kafka_log.log import Fate, fates, last_stable_offset
from labkit.sim.models.kafka_log.parts import NOBODY, Phase, Slot, Stage, State
from labkit.sim.models.kafka_log.readers import end_of
from labkit.sim.models.kafka_log.settings import READ_UNCOMMITTED, Settings
from labkit.sim.verdicts import StateJudge


def expected(settings: Settings) -> list[Record]:
    """What should come out: every input record with the running count of its partition, then everybody else's."""
    counts: Counter[str] = Counter()
    records = []
    for record in range(settings.records + settings.budget.others):
        own = record < settings.records
        key = f"p{settings.partition_of(record)}" if own else f"plain{settings.partition_of(record - settings.records)}"
        counts[key] += 1
        records.append(Record(record, key, counts[key]))
    return records


def is_over(state: State) -> bool:
    """Whether everything that was to come has come: nobody is down, nothing is on its way."""
    job, zombie, coordinator, _, readers, _, requests, budget, _, _ = state
    if job.phase is not Phase.ENDED or zombie != NOBODY or requests or budget.others or not coordinator.is_up:
        return False
    return all(reader.is_up for reader in readers) and not any(entry.stage in PREPARED for entry in coordinator.log)


class Judge(StateJudge[State]):
    """Judges what one reader saw, the first unless another is named."""

    def __init__(self, settings: Settings, reader: int = 0) -> None:
        super().__init__(expected(settings), self._view_of)
        self._settings, self._reader = settings, reader

    def _view_of(self, state: State) -> Hashable:
        return state.partitions, state.sights[self._reader]

    def is_over(self, state: State) -> bool:
        """Whether a reader has also read everything that it may."""
        return is_over(state) and all(
            position == end_of(self._settings, which, partition)
            for which, reader in enumerate(state.readers)
            for position, partition in zip(reader.positions, state.partitions, strict=True)
        )

    def history(self, state: State) -> History:
        """What the reader has handed on, with a look at the end, and what an open transaction hides from it."""
        return History(self._events(state), hidden=list(self._hidden(state)))

    def _events(self, state: State) -> Iterator[Observation | Reading]:
        for partition, sight in zip(state.partitions, state.sights[self._reader], strict=True):
            fate_of = fates(partition)
            for position, early in sight:
                yield self._row(partition[position], fate_of[position], early=early)
        yield Reading("end")

    def _hidden(self, state: State) -> Iterator[Observation]:
        for partition in state.partitions:
            fate_of = fates(partition)
            for position in range(end_of(self._settings, self._reader, partition), len(partition)):
                if fate_of[position] in (Fate.OPEN, Fate.COMMITTED):
                    yield self._row(partition[position], fate_of[position], early=False)

    def _row(self, slot: Slot, fate: Fate | None, *, early: bool) -> Observation:
        record = self.expected[slot.record]
        visibility = Visibility.PRECOMMITTED if early else Visibility.COMMITTED
        return Observation(
            *record, slot.batch, slot.attempt, Visibility.ABORTED if fate is Fate.ABORTED else visibility
        )


SAID = {
    "no_loss": "In the end the reader has handed on every record.",
    "no_duplicate": "In the end the reader has handed on no record twice.",
    "no_regression": "The reader saw no key go back.",
    "no_aborted_read": "The reader saw no record of an aborted transaction.",
    "no_precommitted_read": "The reader saw no record before its transaction was decided.",
}


def claims(settings: Settings, text: Callable[[State], str]) -> Sequence[Property[State]]:
    """What the judge says of every end; rules of the protocol; what can be seen on the way; that the job ends."""
    judged = Judge(settings)
    properties = [judged.claim(name, sentence, judged.is_over) for name, sentence in SAID.items()]
    properties.append(_nothing_open(judged))
    if not settings.budget.rollbacks:
        properties.append(_decided_first())
    return (*properties, *_glimpses(settings, judged, text), _ends())


def _nothing_open(judged: Judge) -> Property[State]:
    def first(state: State) -> tuple[int, int, Slot] | None:
        for where, partition in enumerate(state.partitions):
            position = last_stable_offset(partition)
            if position < len(partition):
                return where, position, partition[position]
        return None

    def because(state: State) -> str:
        record = first(state)
        assert record is not None
        where, position, slot = record
        return (
            f"the transaction t{slot.name}/e{slot.epoch} is open for ever: the last stable offset of partition {where} "
            f"stays at {position}, before record {slot.record}."
        )

    return Property(
        "nothing_open",
        Mood.ALWAYS,
        "In the end no open transaction holds back the last stable offset.",
        lambda state: first(state) is None,
        because,
        judged.is_over,
    )


def _decided_first() -> Property[State]:
    def early(state: State) -> Slot | None:
        checkpoints = state.job.checkpoints
        last = checkpoints[-1].number if checkpoints else -1
        for partition in state.partitions:
            for slot, fate in zip(partition, fates(partition), strict=True):
                if fate is Fate.COMMITTED and slot.batch > last:
                    return slot
        return None

    def because(state: State) -> str:
        slot = early(state)
        assert slot is not None
        checkpoints = state.job.checkpoints
        last = f"the last complete one is {checkpoints[-1].number}" if checkpoints else "none is complete"
        return f"record {slot.record} is committed, but it belongs to checkpoint {slot.batch}, and {last}."

    return Property(
        "decided_first",
        Mood.ALWAYS,
        "A transaction is committed only after its checkpoint is complete.",
        lambda state: early(state) is None,
        because,
    )


def _glimpses(settings: Settings, judged: Judge, text: Callable[[State], str]) -> Iterator[Property[State]]:
    """What can be seen, and would be missed if the model could not do its work."""
    last = len(settings.readers) - 1

    def half(state: State) -> bool:
        return any(
            state.coordinator.log[slot.name].stage is Stage.PREPARE_COMMIT
            for partition, sight in zip(state.partitions, state.sights[0], strict=True)
            for slot in (partition[position] for position, _ in sight)
            if slot.batch >= 0
        )

    def early(state: State) -> bool:
        return any(record.early for sight in state.sights[last] for record in sight)

    def waits(state: State) -> bool:
        return any(Fate.COMMITTED in fates(each)[last_stable_offset(each) :] for each in state.partitions)

    some = Mood.SOMETIMES
    yield judged.all_out("All is written and read.", text, judged.is_over)
    if settings.partitions > 1 and settings.records > 1 and not settings.reuses_id:
        yield Property("half_visible", some, "A reader has one part of a transaction, not yet the other.", half, text)
    if settings.readers[last] == READ_UNCOMMITTED:
        yield Property("early_seen", some, "The reader at read_uncommitted sees an undecided record.", early, text)
    if settings.budget.others:
        yield Property("waits", some, "A committed record waits behind an open transaction.", waits, text)


def _ends() -> Property[State]:
    def because(state: State) -> str:
        return f"the job has failed {state.failures} times, and would fail again."

    return Property(
        "ends",
        Mood.EVENTUALLY,
        "The job ends, without an endless error.",
        lambda state: state.job.phase is Phase.ENDED,
        because,
    )
