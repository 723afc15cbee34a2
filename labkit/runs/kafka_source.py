"""Spark's own Kafka source as the input of a run: its topic, what it is told, and how far it and its group say it is.

How far the job has read lies in its checkpoint: `offsets/N` holds the end of batch N for every partition, and a
restarted driver goes on from there. The consumer group is a second, separate record, for monitors: it is written only
where the run asks for it, after `commits/N`, and nothing ever reads it back.
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
"""By partition, the offset of the next record to read."""


def _plain(offsets: Offsets) -> dict[str, int]:
    """Offsets as Spark and JSON write them: {"0": 3}."""
    return {str(partition): offset for partition, offset in offsets.items()}


@contextmanager
def opened(folder: RunFolder) -> "Iterator[InputTopic]":
    """The input topic of a run, for a block."""
    from labkit.stores.kafka.input import InputTopic

    with closing(InputTopic(folder.source)) as topic:
        yield topic


def check_source(scenario: Scenario) -> None:
    """Checks, before anything is made, that the broker and the connector's jars are there.

    Raises `ServiceUnavailable` with what is missing.
    """
    if scenario.job is Job.KAFKA:
        from labkit.host.addresses import kafka
        from labkit.stores.kafka.transaction import probe

        probe(kafka())
        CONNECTOR.find(find_java())


def feed(scenario: Scenario, folder: RunFolder) -> None:
    """Fills the run's topic: with everything, or up to the crash after which a partition is added."""
    if scenario.job is Job.KAFKA:
        lines: Iterator[tuple[int, str]] = enumerate(read_log(scenario.input))
        if scenario.between is Fault.ADD_PARTITION:
            # What lies behind the crashed batch is written only after the crash, when
            # there is one partition more.
            most = scenario.records_per_batch * (scenario.crashes[0].batch + 1)
            lines = ((offset, word) for offset, word in lines if offset < most)
        with opened(folder) as topic:
            topic.fill(lines)


def drop_source(scenario: Scenario, folder: RunFolder) -> None:
    """Deletes the topic and its group. Idempotent."""
    if scenario.job is Job.KAFKA:
        with opened(folder) as topic:
            topic.destroy()


def change_source(scenario: Scenario, folder: RunFolder, crashes: int) -> dict[str, Any]:
    """Changes the topic, or what its group says, after the nth crash, and returns what it has done."""
    with opened(folder) as topic:
        if scenario.between is Fault.ADD_PARTITION:
            topic.fill(enumerate(read_log(scenario.input)), new_partition=True)
            return {"ends": _plain(topic.ends())}
        ends = topic.ends()
        # Both lies are told: a job that believed the group would lose records after the
        # first and repeat them after the second.
        topic.commit_offsets(ends if crashes % 2 else dict.fromkeys(ends, 0))
        return {"group": _plain(topic.group_offsets())}


def progress(folder: RunFolder) -> dict[str, Any]:
    """How far the job is by its checkpoint, planned and finished, and how far by its group; and how far there is."""
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
    """The end of a batch, from `offsets/N`: a version, metadata, and {"topic": {"partition": offset}}."""
    lines = (checkpoint.folder / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    # One topic a run, so there is one entry.
    [partitions] = json.loads(lines[-1]).values()
    return {int(partition): offset for partition, offset in sorted(partitions.items())}


def source_options(folder: RunFolder, records: int) -> dict[str, str]:
    """What Spark's Kafka source is told. A limit in offsets is one in records where no transaction ends in between."""
    with opened(folder) as topic:
        return {
            "kafka.bootstrap.servers": topic.address,
            "subscribe": topic.name,
            "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed",
            "maxOffsetsPerTrigger": str(records),
        }


class GroupCommits:
    """Tells a consumer group what the checkpoint has finished, as an afterthought that may fail."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._checkpoint = folder, Checkpoint(folder.checkpoint)
        self._committed = self._checkpoint.decided()

    def follow(self) -> None:
        """Looks at the commit log, and commits to the group once it has grown."""
        finished = self._checkpoint.decided()
        if finished is None or finished == self._committed:
            return
        self._committed = finished
        try:
            with opened(self._folder) as topic:
                topic.commit_offsets(offsets_of(self._checkpoint, finished))
        except LabError as error:
            print(f"labkit: the group does not know of batch {finished}: {error}", file=sys.stderr, flush=True)
