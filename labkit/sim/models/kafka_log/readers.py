"""What readers do: poll up to where their isolation allows, hand rows on, store positions, crash and come back.

A reader at read_uncommitted (Kafka's default) gets every record up to the end; one at read_committed gets no record
from the last stable offset on, and none of an aborted transaction. This module must not know jobs.
"""

from labkit.sim.models.kafka_log.log import Fate, fates, last_stable_offset
from labkit.sim.models.kafka_log.parts import Coordinator, Partition, Reader, ReadRecord, Sight, Stage
from labkit.sim.models.kafka_log.settings import READ_COMMITTED, Settings


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
