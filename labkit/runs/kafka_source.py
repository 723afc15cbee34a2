"""Use Spark's own Kafka source as the input of a run: its topic, its options, and how far job and group have read.

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
    return {str(partition): offset for partition, offset in offsets.items()}


@contextmanager
def opened(folder: RunFolder) -> "Iterator[InputTopic]":
    """Open the Kafka topic with the input of a run, and close it at the end of the `with` block."""
    from labkit.stores.kafka.input import InputTopic

    with closing(InputTopic(folder.source)) as topic:
        yield topic


def check_source(scenario: Scenario) -> None:
    """Raise `ServiceUnavailable` if a scenario reads Kafka, but the broker or a jar of Spark's connector is missing."""
    if scenario.job is Job.KAFKA:
        from labkit.host.addresses import kafka
        from labkit.stores.kafka.transaction import probe

        probe(kafka())
        CONNECTOR.find(find_java())


def feed(scenario: Scenario, folder: RunFolder) -> None:
    """For a scenario that reads Kafka, write the input file into the run's topic.

    If a partition will be added after the crash, write only the records up to the end of the crashed batch; later
    `change_source` writes the rest.
    """
    if scenario.job is Job.KAFKA:
        lines: Iterator[tuple[int, str]] = enumerate(read_log(scenario.input))
        if scenario.between is Fault.ADD_PARTITION:
            most = scenario.records_per_batch * (scenario.crashes[0].batch + 1)
            lines = ((offset, word) for offset, word in lines if offset < most)
        with opened(folder) as topic:
            topic.fill(lines)


def drop_source(scenario: Scenario, folder: RunFolder) -> None:
    """If the scenario reads Kafka, delete the input topic of the run and its consumer group."""
    if scenario.job is Job.KAFKA:
        with opened(folder) as topic:
            topic.destroy()


def change_source(scenario: Scenario, folder: RunFolder, crashes: int) -> dict[str, Any]:
    """After a crash, add a partition to the input topic, or commit wrong offsets to its consumer group.

    The wrong offsets are the ends of the partitions if `crashes`, the number of crashes so far, is odd; otherwise they
    are 0. The result proves the change: `{"ends": {partition: end}}` after a partition was added, or
    `{"group": {partition: committed offset}}` after a wrong commit.
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
    """Return a dict with four positions in the run's topic, each as `{partition: offset}`.

    `planned` and `finished` are the ends of the last planned and the last finished batch in Spark's checkpoint, `group`
    is the position that the consumer group has committed, and `ends` are the ends of the partitions.
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
    """Return a dict from partition to the offset at which a batch ends.

    The offsets are read from the last line of the batch's file `offsets/N`, which has the form {"topic": {"partition":
    offset}}.
    """
    lines = (checkpoint.folder / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    # Each run has one topic, so there is one entry.
    [partitions] = json.loads(lines[-1]).values()
    return {int(partition): offset for partition, offset in sorted(partitions.items())}


def source_options(folder: RunFolder, records: int) -> dict[str, str]:
    """Return the options of Spark's Kafka source for the run's topic, at most `records` records per batch.

    A batch may have fewer, because `maxOffsetsPerTrigger` also counts the end markers of transactions.
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
    """Commits the end offsets of each finished batch to the run's consumer group, so monitors can show the job's lag.

    If a commit fails, a message on standard error is enough, because the job itself never reads these offsets.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._checkpoint = folder, Checkpoint(folder.checkpoint)
        self._committed = self._checkpoint.decided()

    def follow(self) -> None:
        """Commit the end of the last finished batch to the consumer group, unless this object has done so before."""
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
