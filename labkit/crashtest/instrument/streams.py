"""Records a query that the user's code starts: `stream.writeStream.format(...)`, `toTable`, or foreachBatch.

While that code runs, its queries get the run's checkpoint and trigger instead of their own. A step is added before the
sink that passes the rows on unchanged; it records that a task begins, and that the task has given all its rows to the
sink. So a job can be killed in the middle of a sink in the JVM, although the effects of such a sink cannot be recorded.
"""

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import TaskContext

from labkit.crashtest.instrument.recorder import recorder
from labkit.crashtest.instrument.ticket import Ticket

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

IN_CALL = "labkit.crashtest.call"
"""The local property of Spark that distinguishes tasks of a foreachBatch function from tasks that write
into the sink.
"""


class Start(NamedTuple):
    """The settings of a test run that replace those of a query that the user's code starts."""

    ticket: Ticket | None
    """The ticket of the run; if None, nothing is recorded."""
    checkpoint: str
    suffix: str
    """A suffix for the query's name, because two queries of a session must not have the same name."""
    started: list["StreamingQuery"]
    """The queries that the user's code has started so far."""


_starting = threading.local()


def _current() -> Start | None:
    """Return the settings for queries that this thread starts; None outside `starting`."""
    current: Start | None = getattr(_starting, "now", None)
    return current


@contextmanager
def starting(start: Start) -> Iterator[None]:
    """Apply the run's settings to every query that this thread starts within the `with` block."""
    _instrument()
    _starting.now = start
    try:
        yield
    finally:
        _starting.now = None


class Passage:
    """The step that is added before the sink: it records the task and passes the rows on unchanged."""

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket.to_json()

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        # A job of a foreachBatch function, whose call is recorded in the driver
        # (`_recorded`).
        if context.getLocalProperty(IN_CALL):
            yield from batches
            return
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        ticket = Ticket.from_json(self._ticket)
        with recorder.call(ticket, batch, f"task {context.partitionId()}"):
            yield from batches


@functools.cache
def _instrument() -> None:
    """Wrap the PySpark methods by which the user's code starts a query, once in this process."""
    from pyspark.sql.classic.dataframe import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    _give_passage(DataFrame)
    for name in ("start", "toTable"):
        setattr(DataStreamWriter, name, _around_start(getattr(DataStreamWriter, name)))
    for name, around in (("queryName", _around_name), ("foreachBatch", _around_function)):
        setattr(DataStreamWriter, name, around(getattr(DataStreamWriter, name)))


def _give_passage(owner: Any) -> None:
    plain = owner.writeStream.fget

    def write_stream(self: "DataFrame") -> Any:
        start = _current()
        if start is None or start.ticket is None:
            return plain(self)
        return plain(self.mapInArrow(Passage(start.ticket), self.schema))

    owner.writeStream = property(write_stream, doc=owner.writeStream.__doc__)


def _around_start(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def started(self: Any, *arguments: Any, **named: Any) -> Any:
        start = _current()
        if start is None:
            return plain(self, *arguments, **named)
        kept = {name: value for name, value in named.items() if name.lower() != "checkpointlocation"}
        # Set last, so that it replaces a trigger of the user's own.
        self.trigger(availableNow=True)
        query = plain(self, *arguments, **kept, checkpointLocation=start.checkpoint)
        start.started.append(query)
        return query

    return started


def _around_name(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def named(self: Any, queryName: str) -> Any:
        start = _current()
        return plain(self, queryName + (start.suffix if start else ""))

    return named


def _around_function(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def recorded(self: Any, func: Callable[["DataFrame", int], None]) -> Any:
        start = _current()
        ticket = start.ticket if start else None
        return plain(self, func if ticket is None else _recorded(func, ticket))

    return recorded


def _recorded(function: Callable[["DataFrame", int], None], ticket: Ticket) -> Callable[["DataFrame", int], None]:
    @functools.wraps(function)
    def call(frame: "DataFrame", batch: int) -> None:
        context = frame.sparkSession.sparkContext
        context.setLocalProperty(IN_CALL, "yes")
        with recorder.call(ticket, batch, "call"):
            function(frame, batch)

    return call


class Starter:
    """Runs the user's code that starts a query, in a separate thread, because the code may wait for the query's end."""

    def __init__(self, run: Callable[[], Any], start: Start) -> None:
        """Start the thread, which calls `run` once; `run` returns a writer, a query, or nothing."""
        self._run, self._start = run, start
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def query(self) -> "StreamingQuery | None":
        """Return the query that the user's code started, or None if it has not started one yet.

        Raises the user's error, or `TypeError` if the user's code ended without starting a query.
        """
        if self._start.started:
            return self._start.started[0]
        if self._thread.is_alive():
            return None
        if self._failed is not None:
            raise self._failed
        # Looked at again: the thread may have started a query between the first look
        # and its end.
        return self._start.started[0] if self._start.started else self._nothing()

    @staticmethod
    def _nothing() -> "StreamingQuery":
        raise TypeError(
            "the function started no query; start one, or return the writer, as in return "
            "stream.writeStream.format(...)"
        )

    def end(self, seconds: float) -> bool:
        """Wait for the end of the user's code, at most `seconds`; return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            with starting(self._start):
                returned = self._run()
                if not self._start.started and hasattr(returned, "toTable"):
                    returned.start()
        # An error of the user's code is the result of the run.
        except BaseException as error:
            self._failed = error


def wants_writer(function: Callable[..., Any]) -> bool:
    """Return whether a function is annotated to take a DataStreamWriter instead of a DataFrame."""
    [parameter, *_] = inspect.signature(function).parameters.values()
    return "DataStreamWriter" in str(parameter.annotation)
