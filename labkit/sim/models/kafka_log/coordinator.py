"""The steps of Kafka's transaction coordinator (initialise, add partitions, decide, time out) and of the readers.

An entry PrepareCommit or PrepareAbort in the coordinator's log is the decision. The markers follow, one partition after
the other, and the coordinator answers EndTxn before it writes them (Kafka, TransactionCoordinator). Version 1 keeps one
epoch for all transactions of a producer; version 2 raises it at the end of each transaction (KIP-890).

A reader at read_uncommitted (the default of Java clients) gets every record up to the end. A reader at read_committed
gets only the records before the last stable offset, and no records of aborted transactions.
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
    Stage,
    fates,
    last_stable_offset,
)
from labkit.sim.wording import members

PREPARED = (Stage.PREPARE_COMMIT, Stage.PREPARE_ABORT)
"""The stages in which the decision is logged, but markers are missing; other requests for the id must wait."""


UNUSED = Entry(Stage.EMPTY, -1)
"""The log entry of a transactional id that no producer has initialised, because its checkpoint had no transaction."""


class Answer(Word):
    """The answer of the transaction coordinator to a request to commit."""

    DONE = "done"
    """The commit is decided, by this request or an earlier one."""
    REFUSED = "refused"
    """PRODUCER_FENCED or INVALID_TXN_STATE: no transaction with this epoch could be committed."""


class Rules(NamedTuple):
    """The rules of the transaction coordinator that parameters can change."""

    bumps_epoch: bool = False
    """Whether the end of a transaction raises the producer's epoch (version 2)."""
    fences: bool = True
    """Whether the coordinator refuses producers with an old epoch."""
    forgets: bool = False
    """Whether the coordinator answers before it logs its decision, which is wrong."""


def entry_of(coordinator: Coordinator, name: int) -> Entry | None:
    """Return the coordinator's log entry for transactional id number `name`; None if the id was never initialised."""
    entry = coordinator.log[name] if name < len(coordinator.log) else UNUSED
    return None if entry == UNUSED else entry


def put(coordinator: Coordinator, name: int, entry: Entry) -> Coordinator:
    """Return the coordinator after it has logged an entry for the transactional id with the number `name`."""
    log, is_up, marked = coordinator
    log = (*log, *(UNUSED,) * (name - len(log)))
    return Coordinator((*log[:name], entry, *log[name + 1 :]), is_up, marked)


def is_busy(coordinator: Coordinator, name: int) -> bool:
    """Return whether markers are still missing for a decided transaction of the transactional id with number `name`."""
    entry = entry_of(coordinator, name)
    return entry is not None and entry.stage in PREPARED


def initialise(coordinator: Coordinator, name: int) -> Coordinator:
    """Return the coordinator after InitProducerId, which raises the epoch of the transactional id `name`.

    The new epoch fences older producers, and an open transaction of the id is aborted.
    """
    entry = entry_of(coordinator, name)
    if entry is None:
        return put(coordinator, name, Entry())
    if entry.stage is Stage.ONGOING:
        return _abort(coordinator, name, entry)
    return put(coordinator, name, Entry(Stage.EMPTY, entry.epoch + 1))


def expire(coordinator: Coordinator, name: int) -> Coordinator:
    """Return the coordinator after a timeout: it aborts the transaction of id `name`, which fences the producer."""
    return _abort(coordinator, name, coordinator.log[name])


def _abort(coordinator: Coordinator, name: int, entry: Entry) -> Coordinator:
    _, epoch, partitions, _ = entry
    return put(coordinator, name, Entry(Stage.PREPARE_ABORT, epoch + 1, partitions))


def add_partition(rules: Rules, coordinator: Coordinator, handle: Handle, partition: int) -> Coordinator | None:
    """Return the coordinator after AddPartitionsToTxn, or None if the producer is fenced.

    The first partition opens the transaction and starts its timeout.
    """
    stage, epoch, partitions, age = coordinator.log[handle.name]
    if handle.epoch != epoch and rules.fences:
        return None
    if stage is not Stage.ONGOING:
        partitions = age = 0
    return put(coordinator, handle.name, Entry(Stage.ONGOING, epoch, partitions | 1 << partition, age))


def end(rules: Rules, coordinator: Coordinator, handle: Handle) -> tuple[Coordinator, Answer]:
    """Return a pair: the coordinator after a request to commit (EndTxn), and its answer.

    Any process that knows the transactional id and the epoch may send the request. The caller has checked that all
    earlier markers of the id are written.
    """
    stage, epoch, partitions, _ = coordinator.log[handle.name]
    is_repeated = stage is Stage.COMPLETE_COMMIT and (handle.epoch == epoch - rules.bumps_epoch or not rules.fences)
    if is_repeated:
        return coordinator, Answer.DONE
    if stage is not Stage.ONGOING or (handle.epoch != epoch and rules.fences):
        return coordinator, Answer.REFUSED
    decided = Entry(Stage.PREPARE_COMMIT, epoch + rules.bumps_epoch, partitions)
    return put(coordinator, handle.name, decided), Answer.DONE


def unmarked(coordinator: Coordinator) -> list[tuple[int, int]]:
    """Return a pair (transactional id, partition) for every commit or abort marker that is still to be written."""
    return [
        (name, partition)
        for name, (stage, _, partitions, _) in enumerate(coordinator.log)
        if stage in PREPARED
        for partition in members(partitions)
        if (name, partition) not in coordinator.marked
    ]


def note_marker(coordinator: Coordinator, name: int, partition: int) -> Coordinator:
    """Return the coordinator after a marker of transactional id number `name` was written into a partition.

    The last marker of the transaction completes the transaction.
    """
    log, is_up, marked = coordinator
    stage, epoch, partitions, _ = log[name]
    marked = tuple(sorted((*marked, (name, partition))))
    if len([each for each, _ in marked if each == name]) < partitions.bit_count():
        return Coordinator(log, is_up, marked)
    others = tuple(pair for pair in marked if pair[0] != name)
    complete = Stage.COMPLETE_COMMIT if stage is Stage.PREPARE_COMMIT else Stage.COMPLETE_ABORT
    return put(Coordinator(log, is_up, others), name, Entry(complete, epoch))


def grow_older(coordinator: Coordinator, timeout: int) -> Coordinator:
    """Return the coordinator one tick later: open transactions get older, but their age is at most `timeout`."""
    log = tuple(
        Entry(stage, epoch, partitions, min(age + 1, timeout))
        if stage is Stage.ONGOING
        else Entry(stage, epoch, partitions)
        for stage, epoch, partitions, age in coordinator.log
    )
    return coordinator._replace(log=log)


def die(rules: Rules, coordinator: Coordinator) -> Coordinator:
    """Return the coordinator after a crash; only its log survives.

    If the rule `forgets` is set, the crash also undoes each decision to commit whose markers are not all written.
    """
    if rules.forgets:
        log = tuple(
            entry._replace(stage=Stage.ONGOING) if entry.stage is Stage.PREPARE_COMMIT else entry
            for entry in coordinator.log
        )
        coordinator = coordinator._replace(log=log)
    return crash(coordinator)


def end_of(settings: Settings, which: int, partition: Partition) -> int:
    """Return the first position in a partition that the reader with number `which` may not read yet."""
    if settings.readers[which] == READ_COMMITTED and settings.broken != "last_stable_offset":
        return last_stable_offset(partition)
    return len(partition)


def rows(
    settings: Settings, which: int, coordinator: Coordinator, partition: Partition, start: int
) -> tuple[ReadRecord, ...]:
    """Return the records that reader number `which` gets if it polls a partition from position `start` onwards."""
    fate_of = fates(partition)
    hides_aborted = settings.readers[which] == READ_COMMITTED
    return tuple(
        ReadRecord(
            position,
            fate_of[position] is Fate.OPEN and coordinator.log[partition[position].name].stage is Stage.ONGOING,
        )
        for position in range(start, end_of(settings, which, partition))
        if fate_of[position] is not None and not (hides_aborted and fate_of[position] is Fate.ABORTED)
    )


def polled(settings: Settings, reader: Reader, where: int, end: int) -> Reader:
    """Return the reader after it has polled partition number `where` up to the position `end`."""
    stored, is_up, positions = reader
    positions = (*positions[:where], end, *positions[where + 1 :])
    return Reader(positions if settings.stores_with_rows else stored, is_up, positions)
