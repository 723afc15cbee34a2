"""The Kafka topic that a job reads: the lab writes a run's input to it, and may commit offsets of a consumer group.

Two files in a local folder describe the topic:
topic       the topic's name, see `labkit.stores.kafka.topic`
homes       the partition of each word, and how many lines have been written

A record is {"offset": line number, "word": word}, because Kafka's own offset does not tell which line it was. All
records of a word go to one partition, so that they keep their order; new words go to the newest partition. The last
record belongs to an aborted transaction: a job that read at read_uncommitted would receive it.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from kafka import KafkaProducer, TopicPartition
from kafka.producer.future import FutureRecordMetadata

from labkit.core.errors import InvalidInput
from labkit.host import durable
from labkit.stores.kafka.topic import Topic
from labkit.stores.kafka.transaction import explained, flush, hang_up
from labkit.stores.kafka.writer import CHUNK, initialise

ABORTED_WORD = "aborted"
"""The word of the aborted record; its line number is -1."""


class InputTopic:
    """The Kafka topic with the input records of one run. The first `fill` creates it.

    `folder` is a local folder, in which files record the topic's name and the partition of each word.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._topic = Topic(folder)

    @property
    def address(self) -> str:
        return self._topic.address

    @property
    def name(self) -> str:
        return self._topic.name()

    @property
    def group(self) -> str:
        """The name of the run's consumer group. Spark never reads the group's offsets, which only serve monitoring."""
        return f"{self.name}.progress"

    def fill(self, lines: Iterable[tuple[int, str]], *, new_partition: bool = False) -> None:
        """Write `lines`, pairs of number and word, to the topic, except lines that an earlier call has written.

        With `new_partition`, first add a partition to the topic, to which all new words go. Raises `InvalidInput` if an
        earlier call was interrupted, because then nobody knows how many lines that call wrote.
        """
        homes, written = self._state()
        lines = [(offset, word) for offset, word in lines if offset >= written]
        if not lines:
            return
        durable.make_folder(self._folder)
        # First: if this process dies while it sends, no later call may write the lines again.
        durable.replace(self._folder / "homes", json.dumps({"writing": True}))
        if new_partition:
            with explained(self.address):
                self._topic.coordinators.admin.create_partitions({self.name: self.partitions() + 1})
        writer = self._topic.writer()
        try:
            newest = self.partitions() - 1
            self._send(writer, ((offset, word, homes.setdefault(word, newest)) for offset, word in lines))
        finally:
            hang_up(writer)
        # After all committed lines: a source that reads beyond them, at read_uncommitted, receives this record.
        self._abort_one(newest)
        state = {"homes": homes, "written": lines[-1][0] + 1}
        durable.replace(self._folder / "homes", json.dumps(state))

    def partitions(self) -> int:
        """Return the topic's number of partitions."""
        return len(self.ends())

    def ends(self) -> dict[int, int]:
        """Return a dict from partition number to the partition's end offset (the offset of its next record)."""
        return _numbered(self._topic.coordinators.ends(self.name))

    def group_offsets(self) -> dict[int, int]:
        """Return the offsets that the run's consumer group has committed, as a dict from partition number to offset."""
        return _numbered(self._topic.coordinators.group_offsets(self.group))

    def commit_offsets(self, offsets: Mapping[int, int]) -> None:
        """Commit `offsets`, a dict from partition number to offset, for the run's consumer group.

        The group must have no members.
        """
        wanted = {TopicPartition(self.name, partition): offset for partition, offset in offsets.items()}
        self._topic.coordinators.commit_offsets(self.group, wanted)

    def close(self) -> None:
        self._topic.close()

    def destroy(self) -> None:
        """Delete the topic and its consumer groups; do nothing if there is no topic."""
        if self._topic.find() is not None:
            self._topic.delete()

    def _state(self) -> tuple[dict[str, int], int]:
        path = self._folder / "homes"
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            return dict(state["homes"]), int(state["written"])
        except FileNotFoundError:
            return {}, 0
        except (ValueError, KeyError, TypeError):
            raise InvalidInput(
                f"{path}: this file does not say which lines are in the input topic, because it is damaged or the "
                "process that wrote the lines died; start the run again."
            ) from None

    def _send(self, writer: KafkaProducer, records: Iterable[tuple[int, str, int]]) -> None:
        with explained(self.address):
            sent: list[FutureRecordMetadata] = []
            for offset, word, partition in records:
                value = json.dumps({"offset": offset, "word": word}).encode()
                sent.append(writer.send(self.name, value, key=word.encode(), partition=partition))
                # In portions: otherwise a million futures would pile up before this process notices a refusal.
                if len(sent) == CHUNK:
                    _check(writer, sent)
                    sent.clear()
            _check(writer, sent)

    def _abort_one(self, partition: int) -> None:
        writer = self._topic.writer(f"{self.name}.input")
        try:
            with explained(self.address):
                initialise(writer, self._topic.timeout)
                writer.begin_transaction()
                self._send(writer, [(-1, ABORTED_WORD, partition)])
            # Initialising the id aborts its open transaction, and returns only after the abort marker is written.
            self._topic.coordinators.fence(f"{self.name}.input", self._topic.timeout)
        finally:
            hang_up(writer)


def _numbered(offsets: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {place.partition: offset for place, offset in sorted(offsets.items())}


def _check(writer: KafkaProducer, sent: list[FutureRecordMetadata]) -> None:
    flush(writer)
    for future in sent:
        future.get(timeout=1)
