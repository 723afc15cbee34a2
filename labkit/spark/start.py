"""Start a query that writes with one of the lab's sinks: lock its checkpoint, recover, then start.

    query = start(df, checkpoint, sink="two_phase", store="files", location=folder)
    query.await_end()

Recovery comes before the replay, because an unfinished transaction may hold locks for which the replay would wait.
"""

import queue
import sys
import threading
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from labkit.core.errors import InvalidInput, JobFailed, LabError
from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy, orders
from labkit.core.words import nearest
from labkit.sinks import SINKS, check_capability
from labkit.spark.adapters.data_source import OPTION, LabkitSink, SinkOptions
from labkit.spark.adapters.foreach_batch import ForeachBatchAdapter
from labkit.spark.checkpoint import Checkpoint, DriverLock, Identity, enter, new_query
from labkit.spark.cluster import check_speculation
from labkit.spark.master import retries
from labkit.spark.queries import reason, register
from labkit.spark.reach import Armed
from labkit.spark.stopwatch import Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Word = TypeVar("Word", Strategy, Order)

COLUMNS = ["offset", "key", "value"]


@dataclass
class OpenCheckpoint:
    """A checkpoint that this process has locked in order to run its query. Call `recover` before the query starts."""

    checkpoint: Checkpoint
    options: SinkOptions
    lock: DriverLock

    def recover(self) -> list[str]:
        """Commit or abort the transactions that earlier drivers left unfinished; return a sentence for each of them."""
        coordinator = self.options.coordinator()
        with closing(coordinator.sink.store):
            return list(coordinator.recover(self.checkpoint.decided()))


def open_checkpoint(
    folder: Path,
    *,
    sink: Strategy,
    order: Order,
    store: str,
    location: Path,
    source: str = "",
    partitions: int = 3,
    armed: Armed | None = None,
    query: str | None = None,
) -> OpenCheckpoint:
    """Lock a checkpoint directory for this process and register the process as the query's new driver.

    `location` is the store's path, `source` describes the query's input, and `armed` is a crash that is planned in this
    driver. For a new checkpoint, `query` is the query's name in the store, by default a random one; an existing
    checkpoint keeps its name. Raises `InvalidInput` if the checkpoint is in use or belongs to another query.
    """
    check_capability(sink, store)
    checkpoint = Checkpoint(folder)
    lock = DriverLock(checkpoint)
    wanted = Identity(query or new_query(), sink.value, store, str(location), order.value, source)
    try:
        checkpoint.check()
        identity, incarnation = enter(checkpoint, wanted)
    except LabError:
        # Released at once, because another driver in this process may need the checkpoint.
        lock.release()
        raise
    options = SinkOptions(sink, order, store, location, identity.query, incarnation, checkpoint.log, partitions, armed)
    return OpenCheckpoint(checkpoint, options, lock)


class LabQuery:
    """A running query with one of the lab's sinks.

    In decision order, a thread of this object commits each batch after Spark has written the batch's `commits/N`.
    """

    def __init__(self, opened: OpenCheckpoint, query: "StreamingQuery") -> None:
        self.query = query
        self._opened = opened
        self._notified: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        # In its own thread, because a commit may wait for a server, and Spark delivers all events of a session through
        # one thread.
        self._delivering = threading.Thread(target=self._deliver, daemon=True)
        self._delivering.start()

    def notify(self, batch: int) -> None:
        """Start to commit the transactions of a batch that Spark has finished, and return at once.

        If a notification is lost, the next one also commits this batch.
        """
        self._notified.put(batch)

    def finish(self) -> None:
        """Commit all finished batches and release the checkpoint's lock; call this method after the query's end.

        Without this call the last batch might stay uncommitted until the next start of the query. The lock is released
        even if the commit fails.
        """
        try:
            decided = self._opened.checkpoint.decided()
            if decided is not None:
                self._commit_through(decided)
                self._abort_superseded(decided)
        finally:
            self._free()

    def await_end(self) -> None:
        """Wait for the query's end, then call `finish`. If the query failed, release the lock and raise `JobFailed`."""
        try:
            self.query.awaitTermination()
        except Exception as error:
            with suppress(Exception):  # a JVM that does not answer cannot say whether the query still runs
                if not self.query.isActive:
                    self._free()
            raise JobFailed(f"the query failed: {reason(error)}") from error
        self.finish()

    def _free(self) -> None:
        # The thread that commits ends first, so that no other driver can start before its last commit.
        self._notified.put(None)
        self._delivering.join()
        self._opened.lock.release()

    def _deliver(self) -> None:
        while (batch := self._notified.get()) is not None:
            try:
                # The file is checked, because Spark does not guarantee that it exists before the progress event.
                if batch in self._opened.checkpoint.commit_log():
                    self._commit_through(batch)
            except Exception as error:  # a lost notification costs time but no data, because the next commit repeats it
                print(f"labkit: the notification of batch {batch} failed: {error}", file=sys.stderr, flush=True)

    def _abort_superseded(self, batch: int) -> None:
        """Abort the transactions of task attempts that another attempt of the same task has replaced.

        The commit of a batch also does this, but a replaced attempt may still have been running at the last commit.
        """
        if self._opened.options.retries:
            sink = self._opened.options.coordinator().sink
            with closing(sink.store):
                sink.drop_losers(batch, ())

    def _commit_through(self, batch: int) -> None:
        coordinator = self._opened.options.coordinator()
        watch = Stopwatch(self._opened.options.log, batch)
        with closing(coordinator.sink.store), watch.phase("commit"):
            coordinator.commit_log_durable(batch)
        watch.keep()


class Notifier(StreamingQueryListener):
    """A Spark listener that calls `LabQuery.notify` whenever Spark has finished a batch of one of the lab's queries."""

    def __init__(self) -> None:
        self._queries: dict[str, LabQuery] = {}

    def watch(self, query: LabQuery) -> None:
        """Call `query.notify` from now on when Spark has finished a batch of this query."""
        self._queries[str(query.query.runId)] = query

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing, because no batch is finished."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """If the event is of a query with a sink of the lab, notify that query that its batch is finished."""
        query = self._queries.get(str(event.progress.runId))
        if query is not None:
            query.notify(event.progress.batchId)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing, because no batch is finished."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Forget the query, because it has ended."""
        self._queries.pop(str(event.runId), None)


_notifiers: dict[int, Notifier] = {}
"""The notifier of every session in this process, by the session's `id()`, since Spark keeps listeners per session."""


def notifier(spark: "SparkSession") -> Notifier:
    """Return the session's listener that notifies the lab's queries of finished batches; create it if missing."""
    if id(spark) not in _notifiers:
        _notifiers[id(spark)] = Notifier()
        spark.streams.addListener(_notifiers[id(spark)])
    return _notifiers[id(spark)]


def launch(
    frame: "DataFrame", opened: OpenCheckpoint, output_mode: str = "append", *, every: int | None = None
) -> LabQuery:
    """Start a streaming query that writes `frame` with the sink of the checkpoint `opened`.

    The caller must have called `opened.recover`. Without `every`, the query ends when it has processed all available
    data. With `every` it runs until somebody stops it, and Spark plans a batch every `every` seconds (0: as soon as the
    last batch is done). In append mode the query writes through Spark's Data Source API. A Python Data Source supports
    no other mode, so in all other modes the query uses foreachBatch.
    """
    listener = notifier(frame.sparkSession)
    writer = frame.writeStream.outputMode(output_mode).option("checkpointLocation", str(opened.checkpoint.folder))
    if output_mode == "append":
        register(frame.sparkSession, LabkitSink)
        opened = _for_attempts(opened, frame.sparkSession)
        writer = writer.format("labkit").option(OPTION, opened.options.to_text())
    else:
        writer = writer.foreachBatch(ForeachBatchAdapter(opened.options))
    writer = writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=f"{every} seconds")
    query = LabQuery(opened, writer.start())
    listener.watch(query)
    return query


def _for_attempts(opened: OpenCheckpoint, spark: "SparkSession") -> OpenCheckpoint:
    """Return a copy of `opened` whose options say whether this session's master retries failed tasks.

    Raises `InvalidInput` if the session uses speculative tasks, but the sink does not support them.
    """
    context, strategy = spark.sparkContext, opened.options.strategy
    check_speculation(SINKS[strategy].bears_speculation, strategy.value, context.getConf().get)
    return replace(opened, options=replace(opened.options, retries=retries(str(context.master))))


def start(
    frame: "DataFrame",
    checkpoint: Path,
    *,
    sink: str,
    store: str,
    location: Path,
    order: str | None = None,
    output_mode: str = "append",
) -> LabQuery:
    """Start a streaming query that writes `frame` with a sink of the lab, after recovery from earlier drivers.

    Recovery commits or aborts the transactions that an earlier driver left unfinished. `frame` has the columns offset
    (long, the identity of the input record), key (string) and value (long). `order` is `engine` (the sink commits
    before Spark writes `commits/N`), `decision` (the sink commits after that), or None for the sink's default. Raises
    `InvalidInput` for a checkpoint that is in use or belongs to another query. Also raises it if sink, order or store
    do not exist or do not fit together.
    """
    if frame.columns != COLUMNS:
        raise InvalidInput(
            f"start: the DataFrame needs the columns {COLUMNS}, not {frame.columns}; select and rename columns."
        )
    strategy = _member(Strategy, "sink", sink)
    possible = orders(strategy)
    chosen = possible[0] if order is None else _member(Order, "order", order)
    if chosen not in possible:
        able = " or ".join(each for each in Strategy if chosen in orders(each))
        raise InvalidInput(
            f"start(order={order!r}): the sink {sink} lacks this order; leave order out, or use the sink {able}."
        )
    opened = open_checkpoint(checkpoint, sink=strategy, order=chosen, store=store, location=location)
    try:
        opened.recover()
        return launch(frame, opened, output_mode)
    except BaseException:
        opened.lock.release()
        raise


def _member(kind: type[Word], name: str, value: str) -> Word:
    values = [each.value for each in kind]
    if value not in values:
        raise InvalidInput(f"start({name}={value!r}): unknown; {nearest(str(value), values)}")
    return kind(value)
