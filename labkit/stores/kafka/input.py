"""The topic that a job reads: filled once with a run's input, and what consumers may say of how far they have read.

    topic       its name, see `labkit.stores.kafka.topic`
    homes       which partition each word lives in, and how many lines are written

A record is {"offset": line number, "word": word}: where Kafka puts it says nothing about which line it was. All records
of a word are in one partition, so that they keep their order; a word that is new goes to the newest partition. Behind
the lines lies a record that its writer aborted: a reader at read_uncommitted would get it. This module must not read
the records: that is the job's part.
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
"""What the aborted record says; its line number is -1."""


class InputTopic:
    """The input of one run. Nothing is created before it is filled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._topic = Topic(folder)

    @property
    def address(self) -> str:
        """The broker's address, as host:port. Raises `ServiceUnavailable`."""
        return self._topic.address

    @property
    def name(self) -> str:
        """The topic's name."""
        return self._topic.name()

    @property
    def group(self) -> str:
        """The consumer group of the run, without members. It begins with the topic's name and is deleted with it."""
        return f"{self.name}.progress"

    def fill(self, lines: Iterable[tuple[int, str]], *, new_partition: bool = False) -> None:
        """Writes the lines that are not written yet; when this returns, the broker has all of them.

        With `new_partition` the topic gets one partition more first, to which words go that are new. Raises
        `InvalidInput` where an earlier call was cut off, since nobody knows how far it came.
        """
        homes, written = self._state()
        lines = [(offset, word) for offset, word in lines if offset >= written]
        if not lines:
            return
        durable.make_folder(self._folder)
        # The old note goes first: if this process dies while it sends, nobody may
        # believe that the lines are complete, nor write them again.
        durable.replace(self._folder / "homes", json.dumps({"writing": True}))
        if new_partition:
            self.add_partition()
        writer = self._topic.writer()
        try:
            newest = self.partitions() - 1
            self._send(writer, ((offset, word, homes.setdefault(word, newest)) for offset, word in lines))
        finally:
            hang_up(writer)
        # The aborted record comes last, so that a source that stops at the end of the
        # lines has it behind them and one that ignores the isolation level reads it.
        self._abort_one(newest)
        state = {"homes": homes, "written": lines[-1][0] + 1}
        durable.replace(self._folder / "homes", json.dumps(state))

    def add_partition(self) -> int:
        """Gives the topic a partition more; returns its number."""
        number = self.partitions()
        with explained(self.address):
            self._topic.coordinators.admin.create_partitions({self.name: number + 1})
        return number

    def partitions(self) -> int:
        """How many partitions the topic has."""
        return len(self.ends())

    def ends(self) -> dict[int, int]:
        """Every partition, with the offset that the next record there will get."""
        return _numbered(self._topic.coordinators.ends(self.name))

    def group_offsets(self) -> dict[int, int]:
        """How far the group says that it has read: by partition, the next offset. Monitors look at it; Spark never."""
        return _numbered(self._topic.coordinators.group_offsets(self.group))

    def commit_offsets(self, offsets: Mapping[int, int]) -> None:
        """Commits offsets for the group: it then says that everything before them is read, whether it is so or not."""
        wanted = {TopicPartition(self.name, partition): offset for partition, offset in offsets.items()}
        self._topic.coordinators.commit_offsets(self.group, wanted)

    def close(self) -> None:
        """Closes the connection to the broker."""
        self._topic.close()

    def destroy(self) -> None:
        """Deletes the topic and its group. Idempotent."""
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
                f"{path}: damaged, or its topic was filled by somebody who died; start the run anew."
            ) from None

    def _send(self, writer: KafkaProducer, records: Iterable[tuple[int, str, int]]) -> None:
        """Sends in order, and looks at every answer."""
        with explained(self.address):
            sent: list[FutureRecordMetadata] = []
            for offset, word, partition in records:
                value = json.dumps({"offset": offset, "word": word}).encode()
                sent.append(writer.send(self.name, value, key=word.encode(), partition=partition))
                # Futures are looked at in portions: a million of them would have to be
                # kept otherwise, and a refused record would be noticed at the end only.
                if len(sent) == CHUNK:
                    _check(writer, sent)
                    sent.clear()
            _check(writer, sent)

    def _abort_one(self, partition: int) -> None:
        """Writes a record in a transaction and aborts it."""
        writer = self._topic.writer(f"{self.name}.input")
        try:
            with explained(self.address):
                initialise(writer, self._topic.timeout)
                writer.begin_transaction()
                self._send(writer, [(-1, ABORTED_WORD, partition)])
            # Initialising the id aborts what is open under it, and returns only when
            # the marker of the abort is written.
            self._topic.coordinators.fence(f"{self.name}.input", self._topic.timeout)
        finally:
            hang_up(writer)


def _numbered(offsets: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {place.partition: offset for place, offset in sorted(offsets.items())}


def _check(writer: KafkaProducer, sent: list[FutureRecordMetadata]) -> None:
    flush(writer)
    for future in sent:
        future.get(timeout=1)
