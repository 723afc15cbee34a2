"""The Data Source adapter: a sink strategy as `df.writeStream.format("labkit")`.

`write()` runs in tasks and ends with the pre-commit; its message is the task's vote. `commit()` runs in a Python
process that the driver has started, possibly more than once per batch. Start queries with `labkit.spark.start`, which
first locks the checkpoint and recovers. `write()` must not commit to an external system, because a retried or
speculative task would repeat it.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order, Reach, pass_by
from labkit.core.records import Observation
from labkit.core.strategies import Strategy
from labkit.sinks import Coordinator, Vote, coordinate
from labkit.sinks.coordinator import pass_offset_log
from labkit.spark.reach import Armed, reach_in_task, take_turns
from labkit.stores.contract import Handle

OPTION = "labkit_query"
"""The name of the Data Source option in which `labkit.spark.start` passes all `SinkOptions` as JSON."""


@dataclass(frozen=True)
class SinkOptions:
    """The settings with which each Python process of a query opens the sink, to run a task or to commit a batch."""

    strategy: Strategy
    order: Order
    store: str
    location: Path
    query: str
    incarnation: int
    log: Path
    partitions: int
    armed: Armed | None = None
    retries: bool = False
    """Whether Spark may run a task more than once in one driver, so that its attempts must be distinguished."""

    def coordinator(self, reach: Reach | None = None) -> Coordinator:
        """Open the store, and return the object that pre-commits, commits and recovers batches for the query.

        The object calls `reach` at each failpoint, a place where a crash can be planned. The default for `reach` is a
        function that makes the planned crash happen, if there is one.
        """
        armed = pass_by if self.armed is None else self.armed.reach
        return coordinate(
            self.strategy,
            self.order,
            store=self.store,
            location=self.location,
            query=self.query,
            incarnation=self.incarnation,
            log=self.log,
            reach=reach or armed,
        )

    def followed(self) -> AbstractContextManager[None]:
        """Return a context manager for running a task.

        If the task's process suspends itself at a planned crash (SIGSTOP), and another process resumes it later
        (SIGCONT), the context manager records how the task ends.
        """
        return nullcontext() if self.armed is None else self.armed.followed()

    def to_text(self) -> str:
        """Encode the options as JSON, to pass them to Spark as one option of the sink."""
        return json.dumps({**vars(self), "armed": self.armed and self.armed.to_json()}, default=str)

    @classmethod
    def from_text(cls, text: str) -> "SinkOptions":
        """Decode options that `to_text` encoded."""
        data: dict[str, Any] = json.loads(text)
        data |= {"strategy": Strategy(data["strategy"]), "order": Order(data["order"])}
        data |= {"location": Path(data["location"]), "log": Path(data["log"]), "armed": Armed.from_json(data["armed"])}
        return cls(**data)


class LabkitSink(DataSource):
    """Spark's Python Data Source `labkit`: a streaming query in append mode writes its rows with a sink of the lab."""

    @classmethod
    def name(cls) -> str:
        return "labkit"

    def streamWriter(self, schema: object, overwrite: bool) -> "StrategyWriter":
        """Return the writer for one query. Raises `InvalidInput` unless `labkit.spark.start` started the query."""
        text = self.options.get(OPTION)
        if text is None:
            raise InvalidInput(
                'format("labkit") can write only after the lab has locked and recovered the checkpoint: start '
                "the query with labkit.spark.start.start."
            )
        return StrategyWriter(SinkOptions.from_text(text))


@dataclass
class VoteMessage(WriterCommitMessage):
    """The message that `write` in a task sends to `commit` on the driver.

    `vote` names the pre-committed transaction. It is None if there is nothing to commit.
    """

    vote: Vote | None


class StrategyWriter(DataSourceStreamWriter):
    """The writer of Spark's Data Source API for one query; it lets a sink strategy of the lab do the work."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Row]) -> VoteMessage:
        """Write and pre-commit the rows of one task (columns offset, key, value); return the task's commit message."""
        options, context = self._options, TaskContext.get()
        assert context is not None
        batch = int(
            # Spark does not pass the batch to `write()`; a task can read it only in this property of the job.
            context.getLocalProperty("streaming.sql.batchId") or -1
        )
        partition = context.partitionId()
        rows = (Observation(row[0], row[1], row[2], batch, options.incarnation) for row in iterator)
        turn = take_turns(options.armed, batch, partition, options.partitions)
        reach = reach_in_task(options.armed, turn)
        handle = Handle(options.query, batch, partition, options.incarnation, context.taskAttemptId())
        sink = options.coordinator(reach).sink
        with closing(sink.store), options.followed():
            if options.retries:
                sink.drop_earlier(handle)
            rows_in_turn = turn.take(rows) if turn else rows
            pass_offset_log(reach, batch)
            vote = sink.pre_commit(handle, rows_in_turn)
        # Only after the store is closed, because then the next task starts to write.
        if turn:
            turn.done()
        return VoteMessage(vote)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the batch `batchId`. Spark calls this method when all tasks have returned their `messages`."""
        coordinator = self._options.coordinator()
        votes = [message.vote for message in messages if isinstance(message, VoteMessage) and message.vote]
        with closing(coordinator.sink.store):
            coordinator.commit(batchId, sorted(votes, key=lambda vote: vote.handle.partition))
            # Without retries no task runs twice, and searching the store for attempts without a vote would cost every
            # batch a round trip.
            if self._options.retries:
                coordinator.sink.drop_losers(batchId, votes)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing, because at the next start of the query, recovery commits or aborts the batch's transactions.

        Aborting them here would be wrong: Spark may call this method after some transactions of the batch were
        committed, and while tasks still write.
        """
