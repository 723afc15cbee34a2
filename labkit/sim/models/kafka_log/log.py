"""What a partition shows: which records are committed, aborted or open, and up to where a reader may read.

The last stable offset is the position before the first record of an open transaction (Kafka, `isolation.level`); a
reader at read_committed gets nothing from there on, not even what is committed. Order is the order of positions.
This module must not know jobs, coordinators or time.
"""

from functools import lru_cache

from labkit.sim.model import Word
from labkit.sim.models.kafka_log.parts import COMMIT, PLAIN, Partition


class Fate(Word):
    """What has become of a record."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@lru_cache(maxsize=100_000)
def fates(partition: Partition) -> tuple[Fate | None, ...]:
    """The fate of every position; None for a marker."""
    backwards: list[Fate | None] = []
    ends: dict[int, Fate] = {}
    for slot in reversed(partition):
        if slot.record < 0:
            ends[slot.name] = Fate.COMMITTED if slot.record == COMMIT else Fate.ABORTED
            backwards.append(None)
        else:
            backwards.append(Fate.COMMITTED if slot.name == PLAIN else ends.get(slot.name, Fate.OPEN))
    return tuple(reversed(backwards))


def last_stable_offset(partition: Partition) -> int:
    """The position before the first record of an open transaction; the end, if none is open."""
    fate_of = fates(partition)
    return fate_of.index(Fate.OPEN) if Fate.OPEN in fate_of else len(fate_of)


def open_epoch(partition: Partition, name: int) -> int:
    """The epoch of the open transaction of an id in this partition; -1: none is open."""
    for slot in reversed(partition):
        if slot.name == name:
            return slot.epoch if slot.record >= 0 else -1
    return -1
