"""The properties (claims) to check in the simulator `kafka_log`, its texts, and the judge of what a reader received.

Only `labkit.core.judge` counts lost, duplicate and early rows: `Judge` turns the records of a reader into a History.
The claims are about the first reader. It reads at read_committed, unless the only reader is at read_uncommitted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.sim.model import Action, Mood, Property, possible, unless
from labkit.sim.models.kafka_log.coordinator import PREPARED, end_of
from labkit.sim.models.kafka_log.state import (
    COMMIT,
    NOBODY,
    PLAIN,
    READ_UNCOMMITTED,
    Budget,
    Checkpoint,
    Coordinator,
    Fate,
    Job,
    Partition,
    Phase,
    Settings,
    Slot,
    Stage,
    State,
    fates,
    last_stable_offset,
)
from labkit.sim.verdicts import StateJudge
from labkit.sim.wording import listed, members, to_come


def expected(settings: Settings) -> list[Record]:
    """Return the records that a reader should receive: the input, then what another producer writes.

    A record's value is its number among the records of its key, from 1; the producers have different keys.
    """
    counts: Counter[str] = Counter()
    records = []
    for record in range(settings.records + settings.budget.others):
        own = record < settings.records
        key = f"p{settings.partition_of(record)}" if own else f"plain{settings.partition_of(record - settings.records)}"
        counts[key] += 1
        records.append(Record(record, key, counts[key]))
    return records


def is_over(state: State) -> bool:
    """Return whether the run is over.

    That is so if the job has ended, all processes are up, and no request, record or marker is still to come.
    """
    job, zombie, coordinator, _, readers, _, requests, budget, _, _ = state
    if job.phase is not Phase.ENDED or zombie != NOBODY or requests or budget.others or not coordinator.is_up:
        return False
    return all(reader.is_up for reader in readers) and not any(entry.stage in PREPARED for entry in coordinator.log)


class Judge(StateJudge[State]):
    """Judges the records that one reader has received: whether some are lost, duplicated or aborted."""

    def __init__(self, settings: Settings, reader: int = 0) -> None:
        super().__init__(expected(settings), lambda state: (state.partitions, state.sights[reader]))
        self._settings, self._reader = settings, reader

    def is_over(self, state: State) -> bool:
        """Return whether the run is over and every reader has read all records that it may read."""
        return is_over(state) and all(
            position == end_of(self._settings, which, partition)
            for which, reader in enumerate(state.readers)
            for position, partition in zip(reader.positions, state.partitions, strict=True)
        )

    def history(self, state: State) -> History:
        """Return the records that this reader has received, and those that it may not read yet (`hidden`)."""
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


SENTENCES = {
    "no_loss": "In the end the reader has received every record.",
    "no_duplicate": "In the end the reader has received no record twice.",
    "no_regression": "The reader never saw an older record of a key after a newer one.",
    "no_aborted_read": "The reader saw no record of an aborted transaction.",
    "no_precommitted_read": "The reader saw no record before its transaction was decided.",
}


def claims(settings: Settings, judged: Judge) -> Sequence[Property[State]]:
    """Return the properties of the simulator `kafka_log` that a search checks.

    `judged` compares the records that one reader has received with the expected ones.
    """
    properties = [judged.claim(name, sentence, judged.is_over) for name, sentence in SENTENCES.items()]
    properties.append(_nothing_open(judged))
    if not settings.budget.rollbacks:
        sentence = "A transaction is committed only after its checkpoint is complete."
        properties.append(unless("decided_first", Mood.ALWAYS, sentence, _decided_early))
    return (*properties, *_glimpses(settings, judged), _ends())


def _nothing_open(judged: Judge) -> Property[State]:
    def broken(state: State) -> str:
        for where, partition in enumerate(state.partitions):
            position = last_stable_offset(partition)
            if position < len(partition):
                slot = partition[position]
                return (
                    f"the transaction t{slot.name}/e{slot.epoch} is open for ever: the last stable offset of partition "
                    f"{where} stays at {position}, before record {slot.record}."
                )
        return ""

    sentence = "In the end no open transaction holds back the last stable offset."
    return unless("nothing_open", Mood.ALWAYS, sentence, broken, judged.is_over)


def _decided_early(state: State) -> str:
    checkpoints = state.job.checkpoints
    last = checkpoints[-1].number if checkpoints else -1
    for partition in state.partitions:
        for slot, fate in zip(partition, fates(partition), strict=True):
            if fate is Fate.COMMITTED and slot.batch > last:
                complete = f"the last complete one is {last}" if checkpoints else "none is complete"
                return f"record {slot.record} is committed, but it belongs to checkpoint {slot.batch}, and {complete}."
    return ""


def _glimpses(settings: Settings, judged: Judge) -> Iterator[Property[State]]:
    """Yield the "sometimes" properties: events that must be possible, such as reading from an open transaction."""
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

    yield judged.all_out("The reader has received all records.", judged.is_over)
    if settings.partitions > 1 and settings.records > 1 and not settings.reuses_id:
        yield possible("half_visible", "A reader has one part of a transaction, not yet the other.", half)
    if settings.readers[last] == READ_UNCOMMITTED:
        yield possible("early_seen", "The reader at read_uncommitted sees an undecided record.", early)
    if settings.budget.others:
        yield possible("waits", "A committed record waits for an open transaction before it.", waits)


def _ends() -> Property[State]:
    def broken(state: State) -> str:
        failed = f"the job has failed {state.failures} times, and would fail again."
        return "" if state.job.phase is Phase.ENDED else failed

    return unless("ends", Mood.EVENTUALLY, "The job ends, and does not fail again and again.", broken)


def answered(*, was_refused: bool, nothing_new: bool, ends: bool) -> str:
    """Return the sentence for a request to commit that is refused or repeated; an empty text for any other request.

    `was_refused` says that the coordinator refuses the request. `nothing_new` says that the coordinator has committed
    the transaction before. `ends` says that a refusal makes the job fail.
    """
    if was_refused:
        then = "the job ends with this error" if ends else "the sender logs the error and goes on"
        return f"The coordinator refuses a request to commit, because nothing is open under its epoch; {then}."
    if nothing_new:
        return "The coordinator gets a request for a commit that it has already made, so nothing changes."
    return ""


def refused(action: Action) -> str:
    """Return the sentence for a job's write that Kafka refuses."""
    why = "its producer is fenced, or its transaction is over"
    if action.name == "zombie_write":
        return f"The job that was thought dead tries to write record {action.which} and is refused: {why}."
    return f"Record {action.which} is refused, and the job ends with this error: {why}."


def text(settings: Settings, state: State) -> str:
    """Return a state as one line of text: job, coordinator, partitions, readers, and faults that may still happen."""
    parts = [_job(state.job)]
    if state.zombie != NOBODY:
        parts.append(f"zombie {_job(state.zombie)}")
    parts.append(_coordinator(state.coordinator))
    parts += [f"p{where} {_partition(partition)}" for where, partition in enumerate(state.partitions)]
    for which, reader in enumerate(state.readers):
        at = f"at {listed(map(str, reader.positions))}" if reader.is_up else "down"
        stored = "" if reader.stored == reader.positions else f", stored {listed(map(str, reader.stored))}"
        parts.append(f"{settings.readers[which]} {at}{stored}, has {_sight(state, which)}")
    if state.requests:
        parts.append(f"on their way {listed(f'commit {each.handle} of {each.attempt}' for each in state.requests)}")
    left = to_come(Budget._fields, state.budget)
    parts.append(f"to come {listed(left)}")
    if state.since:
        parts.append(f"{state.since} ticks since")
    return "; ".join(parts) + (f"; {state.failures} failed." if state.failures else ".")


def _job(job: Job) -> str:
    done = f"checkpoints {listed(map(_checkpoint, job.checkpoints))}"
    if job.phase in (Phase.DOWN, Phase.ENDED):
        return f"job {job.incarnation} {job.phase}, {done}"
    sentence = f"job {job.incarnation} {job.phase}, number {job.number}, offset {job.offset}"
    sentence += f", producer {job.current or '-'}" + (f" in {_bits(job.added)}" if job.added else "")
    if job.pending:
        sentence += f", pending {listed(map(str, job.pending))}"
    if job.triggered:
        sentence += f", under way {_checkpoint(job.triggered)}"
    if job.due:
        sentence += f", due {listed(f'{each.handle}' + ' asked' * each.is_sent for each in job.due)}"
    if job.to_fence:
        sentence += f", to fence {listed(f't{name}' for name in job.to_fence)}"
    return f"{sentence}, {done}"


def _checkpoint(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.number}@{checkpoint.offset} {listed(checkpoint.handles)}"


def _coordinator(coordinator: Coordinator) -> str:
    log = listed(
        f"t{name} {stage}/e{epoch}"
        + (f" in {_bits(partitions)}" if partitions else "")
        + (f" age {age}" if age else "")
        for name, (stage, epoch, partitions, age) in enumerate(coordinator.log)
        if epoch >= 0
    )
    marked = (
        f", marked {listed(f't{name}-p{where}' for name, where in coordinator.marked)}" if coordinator.marked else ""
    )
    return f"coordinator {'up' if coordinator.is_up else 'down'}: {log}{marked}"


def _partition(partition: Partition) -> str:
    end = last_stable_offset(partition)
    slots = [_slot(slot) for slot in partition]
    return listed([*slots[:end], "|", *slots[end:]]) if end < len(slots) else listed(slots)


def _slot(slot: Slot) -> str:
    if slot.record < 0:
        return f"{'C' if slot.record == COMMIT else 'A'}(t{slot.name}/e{slot.epoch})"
    if slot.name == PLAIN:
        return f"{slot.record}"
    return f"{slot.record}(t{slot.name}/e{slot.epoch}/c{slot.batch}/i{slot.attempt})"


def _sight(state: State, which: int) -> str:
    parts = []
    for where, (partition, sight) in enumerate(zip(state.partitions, state.sights[which], strict=True)):
        fate_of = fates(partition)
        for position, early in sight:
            mark = "!" if early else ""
            parts.append(
                f"p{where}:{position}={partition[position].record}{mark}{'x' * (fate_of[position] is Fate.ABORTED)}"
            )
    return listed(parts)


def _bits(partitions: int) -> str:
    return "+".join(f"p{where}" for where in members(partitions))
