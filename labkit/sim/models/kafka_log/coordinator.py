"""Kafka's transaction coordinator (initialise an id, add partitions, decide, write markers, time out) and its readers.

PrepareCommit or PrepareAbort in its log is the decision; markers follow, one partition after the other, and EndTxn is
answered before they are written (Kafka, TransactionCoordinator). Version 1 keeps one epoch for all transactions of a
producer; version 2 raises it with every end of a transaction (KIP-890).

A reader at read_uncommitted (Kafka's default) gets every record up to the end; one at read_committed gets no record
from the last stable offset on, and none of an aborted transaction.
"""

from typing import NamedTuple

from labkit.sim.model import Word, crash
from labkit.sim.models.kafka_log.state import (
    READ_COMMITTED,
    Coordinator,
    Entry,
    Fate,
    Handle,
    Partition,
    Reader,
    ReadRecord,
    Settings,
    Sight,
    Stage,
    fates,
    last_stable_offset,
)

PREPARED = (Stage.PREPARE_COMMIT, Stage.PREPARE_ABORT)
"""Decided, with markers to come: whoever asks for this id must try again later (CONCURRENT_TRANSACTIONS)."""


UNUSED = Entry(Stage.EMPTY, -1)
"""In the place of an id that was passed over: its checkpoint had nothing of its own to commit."""


class Answer(Word):
    """What the coordinator says to a request to commit."""

    DONE = "done"
    """Decided now, or decided and complete before."""
    REFUSED = "refused"
    """PRODUCER_FENCED or INVALID_TXN_STATE: there is nothing under this epoch that could be committed."""


class Rules(NamedTuple):
    """What a configuration says of the coordinator. `forgets`: it answers before its decision is logged."""

    bumps_epoch: bool = False
    fences: bool = True
    forgets: bool = False


def entry_of(coordinator: Coordinator, name: int) -> Entry | None:
    """What is logged of an id; None for one that was never initialised."""
    entry = coordinator.log[name] if name < len(coordinator.log) else UNUSED
    return None if entry == UNUSED else entry


def put(coordinator: Coordinator, name: int, entry: Entry) -> Coordinator:
    """The coordinator with a new last entry for an id."""
    log, is_up, marked = coordinator
    log = (*log, *(UNUSED,) * (name - len(log)))
    return Coordinator((*log[:name], entry, *log[name + 1 :]), is_up, marked)


def is_busy(coordinator: Coordinator, name: int) -> bool:
    """Whether markers of this id are still to be written."""
    entry = entry_of(coordinator, name)
    return entry is not None and entry.stage in PREPARED


def initialise(coordinator: Coordinator, name: int) -> Coordinator:
    """InitProducerId: raises the epoch, which fences every holder of an older one; aborts first what is open."""
    entry = entry_of(coordinator, name)
    if entry is None:
        return put(coordinator, name, Entry())
    if entry.stage is Stage.ONGOING:
        return _abort(coordinator, name, entry)
    return put(coordinator, name, Entry(Stage.EMPTY, entry.epoch + 1))


def expire(coordinator: Coordinator, name: int) -> Coordinator:
    """The timeout of an open transaction: aborts it and fences its producer."""
    return _abort(coordinator, name, coordinator.log[name])


def _abort(coordinator: Coordinator, name: int, entry: Entry) -> Coordinator:
    _, epoch, partitions, _ = entry
    return put(coordinator, name, Entry(Stage.PREPARE_ABORT, epoch + 1, partitions))


def add_partition(rules: Rules, coordinator: Coordinator, handle: Handle, partition: int) -> Coordinator | None:
    """AddPartitionsToTxn: the first one opens the transaction and starts its clock. None: the producer is fenced."""
    stage, epoch, partitions, age = coordinator.log[handle.name]
    if handle.epoch != epoch and rules.fences:
        return None
    if stage is not Stage.ONGOING:
        partitions = age = 0
    return put(coordinator, handle.name, Entry(Stage.ONGOING, epoch, partitions | 1 << partition, age))


def end(rules: Rules, coordinator: Coordinator, handle: Handle) -> tuple[Coordinator, Answer]:
    """EndTxn with commit, for an id whose markers are all written. Whoever holds the handle may send it."""
    stage, epoch, partitions, _ = coordinator.log[handle.name]
    if _is_repeated(rules, handle, stage, epoch):
        return coordinator, Answer.DONE
    if stage is not Stage.ONGOING or (handle.epoch != epoch and rules.fences):
        return coordinator, Answer.REFUSED
    decided = Entry(Stage.PREPARE_COMMIT, epoch + rules.bumps_epoch, partitions)
    return put(coordinator, handle.name, decided), Answer.DONE


def _is_repeated(rules: Rules, handle: Handle, stage: Stage, epoch: int) -> bool:
    return stage is Stage.COMPLETE_COMMIT and (handle.epoch == epoch - rules.bumps_epoch or not rules.fences)


def unmarked(coordinator: Coordinator) -> list[tuple[int, int]]:
    """(id, partition) of every marker that is decided and not known to be written."""
    return [
        (name, partition)
        for name, (stage, _, partitions, _) in enumerate(coordinator.log)
        if stage in PREPARED
        for partition in range(partitions.bit_length())
        if partitions >> partition & 1 and (name, partition) not in coordinator.marked
    ]


def note_marker(coordinator: Coordinator, name: int, partition: int) -> Coordinator:
    """After a marker was written; after the last of them the transaction is complete."""
    log, is_up, marked = coordinator
    stage, epoch, partitions, _ = log[name]
    marked = tuple(sorted((*marked, (name, partition))))
    if len([each for each, _ in marked if each == name]) < partitions.bit_count():
        return Coordinator(log, is_up, marked)
    others = tuple(pair for pair in marked if pair[0] != name)
    complete = Stage.COMPLETE_COMMIT if stage is Stage.PREPARE_COMMIT else Stage.COMPLETE_ABORT
    return put(Coordinator(log, is_up, others), name, Entry(complete, epoch))


def grow_older(coordinator: Coordinator, timeout: int) -> Coordinator:
    """One tick for every open transaction, up to its timeout."""
    log = tuple(
        Entry(stage, epoch, partitions, min(age + 1, timeout))
        if stage is Stage.ONGOING
        else Entry(stage, epoch, partitions)
        for stage, epoch, partitions, age in coordinator.log
    )
    return coordinator._replace(log=log)


def die(rules: Rules, coordinator: Coordinator) -> Coordinator:
    """The coordinator's crash: its log stays. One that answers before it logs forgets what it had decided."""
    if rules.forgets:
        log = tuple(
            entry._replace(stage=Stage.ONGOING) if entry.stage is Stage.PREPARE_COMMIT else entry
            for entry in coordinator.log
        )
        coordinator = coordinator._replace(log=log)
    return crash(coordinator)


def end_of(settings: Settings, which: int, partition: Partition) -> int:
    """Up to which position this reader may read."""
    if settings.readers[which] == READ_COMMITTED and settings.broken != "last_stable_offset":
        return last_stable_offset(partition)
    return len(partition)


def rows(
    settings: Settings, which: int, coordinator: Coordinator, partition: Partition, start: int
) -> tuple[ReadRecord, ...]:
    """What a poll from this position hands on."""
    fate_of = fates(partition)
    hides_aborted = settings.readers[which] == READ_COMMITTED
    return tuple(
        ReadRecord(position, fate_of[position] is Fate.OPEN and _is_undecided(coordinator, partition[position].name))
        for position in range(start, end_of(settings, which, partition))
        if fate_of[position] is not None and not (hides_aborted and fate_of[position] is Fate.ABORTED)
    )


def _is_undecided(coordinator: Coordinator, name: int) -> bool:
    return coordinator.log[name].stage is Stage.ONGOING


def polled(settings: Settings, reader: Reader, where: int, end: int) -> Reader:
    """The reader after a poll of one partition."""
    stored, is_up, positions = reader
    positions = (*positions[:where], end, *positions[where + 1 :])
    return Reader(positions if settings.stores_with_rows else stored, is_up, positions)


def restarted(reader: Reader) -> Reader:
    """A reader that starts again reads on from what it has stored."""
    return Reader(reader.stored, is_up=True, positions=reader.stored)


def extend_sight(sight: Sight, where: int, more: tuple[ReadRecord, ...]) -> Sight:
    """What was handed on, with more of one partition."""
    return (*sight[:where], (*sight[where], *more), *sight[where + 1 :])
