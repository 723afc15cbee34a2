"""Use Spark's own Kafka source as the input of a run: its topic, its options, and the offsets that job and group
reached.

The checkpoint records how far the job has read: `offsets/N` holds the end of batch N for every partition, and a
restarted driver continues from there. The consumer group is a separate record for monitors: it is written after
`commits/N`, only if the run asks for it, and the job never reads it.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from labkit.core.errors import LabError
from labkit.host.java import find_java
from labkit.host.logs import read_log
from labkit.host.servers.kafka_jars import CONNECTOR
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.options import Fault, Job

if TYPE_CHECKING:
    from labkit.stores.kafka.input import InputTopic

Offsets = dict[int, int]
"""A position in a topic: for each partition, the offset of the next record to read."""


def _plain(offsets: Offsets) -> dict[str, int]:
    """Return a position in a topic in the form in which Spark and JSON write it: {"0": 3}."""
    return {str(partition): offset for partition, offset in offsets.items()}


@contextmanager
def opened(folder: RunFolder) -> "Iterator[InputTopic]":
    """Open the input topic of a run for a `with` block."""
    from labkit.stores.kafka.input import InputTopic

    with closing(InputTopic(folder.source)) as topic:
        yield topic


def check_source(scenario: Scenario) -> None:
    """Check that the Kafka broker answers and the connector's jars are installed, if the scenario needs them.

    Raises `ServiceUnavailable` with the name of the missing service or file.
    """
    if scenario.job is Job.KAFKA:
        from labkit.host.addresses import kafka
        from labkit.stores.kafka.transaction import probe

        probe(kafka())
        CONNECTOR.find(find_java())


def feed(scenario: Scenario, folder: RunFolder) -> None:
    """Write the input into the run's topic if its job reads Kafka.

    If a partition is added after a crash, only the records up to that crash are written now.
    """
    if scenario.job is Job.KAFKA:
        lines: Iterator[tuple[int, str]] = enumerate(read_log(scenario.input))
        if scenario.between is Fault.ADD_PARTITION:
            # The records after the crashed batch are written only after the crash, when there is one more partition.
            most = scenario.records_per_batch * (scenario.crashes[0].batch + 1)
            lines = ((offset, word) for offset, word in lines if offset < most)
        with opened(folder) as topic:
            topic.fill(lines)


def drop_source(scenario: Scenario, folder: RunFolder) -> None:
    """Delete the run's topic and its consumer group if its job reads Kafka. A second call does nothing."""
    if scenario.job is Job.KAFKA:
        with opened(folder) as topic:
            topic.destroy()


def change_source(scenario: Scenario, folder: RunFolder, crashes: int) -> dict[str, Any]:
    """Add a partition to the topic, or falsify its consumer group's offsets, after crash number `crashes` (from 1).

    Returns the new offsets, as proof of the change.
    """
    with opened(folder) as topic:
        if scenario.between is Fault.ADD_PARTITION:
            topic.fill(enumerate(read_log(scenario.input)), new_partition=True)
            return {"ends": _plain(topic.ends())}
        ends = topic.ends()
        # The group gets both wrong offsets: a job that trusted the group would lose records after the first and repeat
        # records after the second.
        topic.commit_offsets(ends if crashes % 2 else dict.fromkeys(ends, 0))
        return {"group": _plain(topic.group_offsets())}


def progress(folder: RunFolder) -> dict[str, Any]:
    """Return four positions in the topic as `{partition: offset}`.

    They are `planned` and `finished` (by the checkpoint), `group` (committed by the consumer group) and `ends`.
    """
    checkpoint = Checkpoint(folder.checkpoint)
    planned, finished = max(checkpoint.offset_log(), default=None), checkpoint.decided()
    with opened(folder) as topic:
        return {
            "planned": {} if planned is None else _plain(offsets_of(checkpoint, planned)),
            "finished": {} if finished is None else _plain(offsets_of(checkpoint, finished)),
            "group": _plain(topic.group_offsets()),
            "ends": _plain(topic.ends()),
        }


def offsets_of(checkpoint: Checkpoint, batch: int) -> Offsets:
    """Return the offset after the last record of a batch for each partition, from `offsets/N`.

    That file has a version, metadata, and {"topic": {"partition": offset}}.
    """
    lines = (checkpoint.folder / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    # Each run has one topic, so there is one entry.
    [partitions] = json.loads(lines[-1]).values()
    return {int(partition): offset for partition, offset in sorted(partitions.items())}


def source_options(folder: RunFolder, records: int) -> dict[str, str]:
    """Return the options for Spark's Kafka source, with at most `records` records in a batch.

    `maxOffsetsPerTrigger` limits offsets, which is a limit in records unless a transaction ends inside the batch.
    """
    with opened(folder) as topic:
        return {
            "kafka.bootstrap.servers": topic.address,
            "subscribe": topic.name,
            "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed",
            "maxOffsetsPerTrigger": str(records),
        }


class GroupCommits:
    """Commits the offsets of finished batches to a consumer group, for monitors. A failure is only printed."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._checkpoint = folder, Checkpoint(folder.checkpoint)
        self._committed = self._checkpoint.decided()

    def follow(self) -> None:
        """Commit the offsets of the last finished batch to the group if a batch has finished since the last call."""
        finished = self._checkpoint.decided()
        if finished is None or finished == self._committed:
            return
        self._committed = finished
        try:
            with opened(self._folder) as topic:
                topic.commit_offsets(offsets_of(self._checkpoint, finished))
        except LabError as error:
            print(
                f"labkit: the offsets of batch {finished} could not be committed to the consumer group: {error}",
                file=sys.stderr,
                flush=True,
            )
