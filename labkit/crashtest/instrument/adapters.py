"""Adapters for three ways in which Spark calls a sink; each puts the recorder around the user's own object.

An adapter carries the file and the name of the sink, not the object, because every process imports the user's file
itself after it has wrapped the libraries that write. The writer of a data source is pickled as Spark would pickle it,
so its state is transferred as it would be without an adapter.
"""

import copy
import inspect
import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext, cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, DataSourceStreamWriter, WriterCommitMessage

from labkit.crashtest.instrument import files, install
from labkit.crashtest.instrument.calls import Call
from labkit.crashtest.instrument.recorder import recorder
from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.subject import Subject, find, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMAT = "labkit_crashtest"
TICKET, NAME = "labkit.ticket", "labkit.name"
"""The data source options that the adapter needs for itself; the user's data source gets all others."""


def ready(ticket: Ticket) -> None:
    """Wrap the libraries that write in this process, and record the effects of the user's project from now on."""
    files.watched.add(ticket.project)
    install.install()


class ForeachBatchAdapter:
    """Calls a user's foreachBatch function and records its effects; runs in the driver."""

    def __init__(self, ticket: Ticket, name: str) -> None:
        ready(ticket)
        self._ticket = ticket
        self._function = find(Subject(ticket.file, name))

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        with recorder.call(self._ticket, batch, "call"):
            self._function(frame, batch)


class ForeachWriterAdapter:
    """Calls a user's ForeachWriter, or function of a row, and records its effects; each task gets its own copy."""

    def __init__(self, ticket: Ticket, name: str) -> None:
        self._ticket, self._name = ticket, name
        self._writer: Any = None
        self._call: Call | None = None

    def open(self, partition: int, batch: int) -> bool:
        ready(self._ticket)
        self._call = recorder.begin(self._ticket, batch, f"task {partition}")
        sink = find(Subject(self._ticket.file, self._name))
        self._writer = sink() if inspect.isclass(sink) else _copied(sink)
        return not hasattr(self._writer, "open") or bool(self._writer.open(partition, batch))

    def process(self, row: Any) -> None:
        if hasattr(self._writer, "process"):
            self._writer.process(row)
        else:
            self._writer(row)

    def close(self, error: Exception | None) -> None:
        # Ended whatever `close` raises: a call without an end would be given the
        # effects of the next task of this process.
        failed = True
        try:
            if hasattr(self._writer, "close"):
                self._writer.close(error)
            failed = error is not None
        finally:
            assert self._call is not None
            recorder.end(self._call, failed=failed)


def _copied(writer: Any) -> Any:
    """Return a task's own copy of the user's writer, as unpickling would make it; a function needs no copy."""
    return writer if inspect.isfunction(writer) else copy.deepcopy(writer)


class DataSourceAdapter(DataSource):
    """A Python data source that stands for the user's and returns the user's stream writer with the
    recorder around it.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        options = dict(self.options)
        ticket, name = (
            Ticket.from_json(pickle.loads(bytes.fromhex(options[TICKET]))),  # noqa: S301  # pickled by `as_option`
            options[NAME],
        )
        ready(ticket)
        others = {key: value for key, value in options.items() if key.lower() not in (TICKET, NAME)}
        source = find(Subject(ticket.file, name))(others)
        writer = source.streamWriter(schema, overwrite)
        kind = ArrowStreamWriterAdapter if isinstance(writer, DataSourceStreamArrowWriter) else StreamWriterAdapter
        return kind(ticket, writer)


def as_option(ticket: Ticket) -> str:
    """Return a ticket as the text of a data source option, which Spark passes on unchanged."""
    return pickle.dumps(ticket.to_json()).hex()


class _RecordedWriter:
    """Calls a user's stream writer and records its effects; the base of the adapters for rows and for
    record batches.
    """

    def __init__(self, ticket: Ticket, writer: Any) -> None:
        self._ticket, self._writer = ticket, writer

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), self._ticket.to_json(), cloudpickle.dumps(self._writer))

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        with recorder.call(self._ticket, batch, f"task {context.partitionId()}"):
            message: WriterCommitMessage = self._writer.write(iterator)
        return message

    def commit(self, messages: Any, batchId: int) -> None:
        with recorder.call(self._ticket, batchId, "commit"):
            self._writer.commit(messages, batchId)

    def abort(self, messages: Any, batchId: int) -> None:
        self._writer.abort(messages, batchId)


class StreamWriterAdapter(_RecordedWriter, DataSourceStreamWriter):
    """The adapter of a user's stream writer that gets rows."""


class ArrowStreamWriterAdapter(_RecordedWriter, DataSourceStreamArrowWriter):
    """The adapter of a user's stream writer that gets Arrow record batches."""


def _rebuilt(kind: type, ticket: dict[str, Any], writer: bytes) -> Any:
    """Unpickle an adapter of a stream writer.

    It wraps the libraries that write and imports the user's file before it unpickles the user's writer.
    """
    unpacked = Ticket.from_json(ticket)
    ready(unpacked)
    load(unpacked.file)
    return kind(unpacked, pickle.loads(writer))  # noqa: S301  # pickled by ourselves a moment ago
