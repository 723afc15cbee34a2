"""A small real job without Spark that copies records from one Kafka topic to another, with a checkpoint in a file.

The job runs in this process, step by step, so that a notebook can read the topic after each step. Its checkpoint
contains the next offset to read and the handle of the transaction to commit. So the job writes in Flink's order: the
checkpoint is the decision to commit, and the commit follows.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.host import durable
from labkit.stores.contract import Handle
from labkit.stores.kafka.reader import READ_COMMITTED, READ_UNCOMMITTED, Entry
from labkit.stores.kafka.topic import Group
from labkit.stores.kafka.writer import KafkaTransaction
from labkit.teach.hands_on.kafka import Kafka, Look, Topic
from labkit.teach.server_outcomes import CopyOutcome
from labkit.view.card import Tabled

Trusted = Literal["checkpoint", "group"]
"""From where a restarted job takes the offset at which it goes on: its checkpoint file, or its consumer group."""


class CopyJob:
    """A job that copies records from one Kafka topic to another in transactions.

    A restarted job uses the same checkpoint file and a new `incarnation`, so that its transactional ids are new.
    """

    def __init__(self, source: Topic, sink: Topic, checkpoint: Path, incarnation: int = 1) -> None:
        self._source, self._sink, self._checkpoint, self._incarnation = source, sink, checkpoint, incarnation
        self._number = 0
        self.position = 0
        """The offset of the next record to read."""
        self.group = Group(source.store.topic, "copy")

    def start(self, trusts: Trusted = "checkpoint") -> None:
        """Recover: commit the transactions in the checkpoint file, abort other unfinished ones, and set the position.

        The position becomes the offset in the checkpoint file or, with `trusts="group"`, that of the consumer group.
        """
        position, decided = self._stored()
        for handle in self._sink.store.prepared("copy"):
            if handle not in decided:
                self._sink.store.abort(handle)
        for handle in decided:
            self._sink.store.commit(handle)
        self.position = position if trusts == "checkpoint" else self.group.offset() or 0

    def read(self, most: int) -> list[Entry]:
        """Read up to `most` records of the source topic with read_committed, and advance the job's position."""
        entries = self._source.entries(READ_COMMITTED, self.position)[:most]
        if entries:
            self.position = entries[-1].position + 1
        return entries

    def begin(self) -> KafkaTransaction:
        """Begin the job's next transaction, with a transactional id that no other transaction uses."""
        handle = Handle("copy", self._number, 0, self._incarnation, 1)
        self._number += 1
        transaction = self._sink.store.begin(handle)
        assert isinstance(transaction, KafkaTransaction)
        return transaction

    def decide(self, handle: Handle, position: int) -> None:
        """Decide to commit a transaction: write its handle and the job's read position into the checkpoint file.

        The file is replaced atomically, so a crash leaves either the old or the new checkpoint.
        """
        durable.make_folder(self._checkpoint.parent)
        content = {"position": position, "decided": [str(handle)]}
        durable.replace(self._checkpoint, json.dumps(content))

    def checkpoint(self, most: int) -> int:
        """Copy up to `most` records in one transaction, and return their number.

        The steps are: read, write, pre-commit, decide, commit, and store the offset in the consumer group.
        """
        entries = self.read(most)
        transaction = self.begin()
        for entry in entries:
            transaction.write(entry.row)
        transaction.prepare()
        self.decide(transaction.handle, self.position)
        self._sink.store.commit(transaction.handle)
        self.group.commit(self.position)
        return len(entries)

    def _stored(self) -> tuple[int, list[Handle]]:
        try:
            checkpoint = json.loads(self._checkpoint.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return 0, []
        return int(checkpoint["position"]), [Handle.parse(name) for name in checkpoint["decided"]]


@takes('lab.copy_topic(kafka, trusts="checkpoint", group_says=0)')
def copy(kafka: Kafka, *, trusts: Trusted, group_says: int, records: int = 4) -> CopyOutcome:
    """Copy half of the records with one job and the rest with a second job, and return the verdict on the copy.

    Between the two jobs, labkit sets the consumer group's offset to `group_says`. The second job starts at the offset
    in the checkpoint if `trusts` is `"checkpoint"`, and at the group's offset if `trusts` is `"group"`. Raises
    `InvalidInput` for another value of `trusts`, or if `group_says` is not between 0 and `records`.
    """
    if not 0 <= group_says <= records:
        raise InvalidInput(
            f"lab.copy_topic(): group_says={group_says!r} is not an offset of the topic; choose a whole number from 0 "
            f"to {records}."
        )
    source, sink, checkpoint = kafka.topic(), kafka.topic(), kafka.folder() / "checkpoint.json"
    rows = [Observation(offset, f"record{offset}", 1, 0, 1) for offset in range(records)]
    source.store.append(*rows)
    first = CopyJob(source, sink, checkpoint, 1)
    first.start()
    first.checkpoint(records // 2)
    first.group.commit(group_says)
    second = CopyJob(source, sink, checkpoint, 2)
    second.start(trusts)
    started_at = second.position
    while second.checkpoint(records):
        pass
    expected = [Record(row.offset, row.key, row.value) for row in rows]
    return CopyOutcome(judge(expected, History([*sink.store.history(), Reading("end")])), started_at)


class Steps(Tabled):
    """The steps of a job that copies Kafka records, and for each step the records that readers get after it.

    `steps` are pairs: a sentence about the step, and the records. The records are None if the broker may still be
    working on the step, because it is then uncertain what readers get.
    """

    title = "What the job did, and what readers get after each step"

    def __init__(self, steps: Sequence[tuple[str, Look | None]]) -> None:
        self.steps = list(steps)

    def first(self, word: str, isolation: str) -> int | None:
        """Return the number (from 1) of the first step after which a reader gets `word`; None if there is none.

        `isolation` is the isolation level of the reader.
        """
        for number, (_, look) in enumerate(self.steps, start=1):
            if look is not None and word in (look.committed if isolation == READ_COMMITTED else look.uncommitted):
                return number
        return None

    def _head(self) -> Sequence[str]:
        return "", "step", "open", READ_UNCOMMITTED, READ_COMMITTED

    def _rows(self) -> Iterator[Sequence[str]]:
        for number, (step, look) in enumerate(self.steps, start=1):
            texts = ["?"] * 3
            if look is not None:
                texts = [", ".join(look.open), " ".join(look.uncommitted), " ".join(look.committed)]
            yield str(number), step, *(each or "-" for each in texts)


@takes("lab.ten_steps(kafka)")
def ten_steps(kafka: Kafka) -> Steps:
    """Copy a record from one topic to another in ten steps, and read at both isolation levels after each step.

    A notebook displays the result as a table.
    """
    source, sink = kafka.topic(), kafka.topic()
    source.plain("hello", "world")
    job = CopyJob(source, sink, kafka.folder() / "checkpoint.json")
    return Steps([(sentence, sink.look() if is_certain else None) for sentence, is_certain in _way(sink, job)])


def _way(sink: Topic, job: CopyJob) -> Iterator[tuple[str, bool]]:
    """Perform the steps of a copy, and yield after each step its description and whether it is certainly complete.

    A step is not certainly complete while the broker may still be working on it; readers may not see its result yet.
    """
    job.start()
    yield "starts: its checkpoint says offset 0", True
    [first] = job.read(1)
    yield f"reads {first.row.key} at offset {first.position}", True
    transaction = job.begin()
    yield "initialises the id of transaction 0", True
    _write(transaction, first)
    yield f"writes {first.row.key}: transaction 0 is open", True
    transaction.prepare()
    position = job.position
    yield "barrier: flushes transaction 0", True
    [second] = job.read(1)
    _write(job.begin(), second)
    yield f"writes {second.row.key} into transaction 1", True
    job.decide(transaction.handle, position)
    yield f"stores its checkpoint: offset {position}, commit 0", True
    sink.request_commit(transaction.handle)
    yield "asks for the commit; the coordinator logs it", False
    sink.store.commit(transaction.handle)
    yield "the marker of transaction 0 is in the log", True
    job.group.commit(position)
    yield "tells its group the offset", True


def _write(transaction: KafkaTransaction, entry: Entry) -> None:
    transaction.write(entry.row)
    transaction.flush()
