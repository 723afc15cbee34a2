"""Adapters for three ways in which Spark calls a sink; each puts the recorder around the user's own object.

An adapter carries the file and the name, not the object, because every process imports the user's file itself
after installing the instruments. A data source's writer is pickled as Spark would pickle it, so its state is
transferred as it would be without an adapter.
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
"""The data source options that belong to the adapter; the user's data source gets the others."""


def ready(ticket: Ticket) -> None:
    """Install the instruments in this process and count the user's project as watched."""
    files.watched.add(ticket.project)
    install.install()


class ForeachBatchAdapter:
    """The adapter of a foreachBatch function; runs in the driver."""

    def __init__(self, ticket: Ticket, name: str) -> None:
        ready(ticket)
        self._ticket = ticket
        self._function = find(Subject(ticket.file, name))

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        with recorder.call(self._ticket, batch, "call"):
            self._function(frame, batch)


class ForeachWriterAdapter:
    """The adapter of a ForeachWriter, or of a function of a row; each task gets its own copy."""

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
    """Return a task's own copy of a writer, as unpickling would make it; a function is returned itself."""
    return writer if inspect.isfunction(writer) else copy.deepcopy(writer)


class DataSourceAdapter(DataSource):
    """The adapter of a Python data source with a stream writer."""

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
    """The common part of the adapters of stream writers."""

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
    """The adapter of a writer of rows."""


class ArrowStreamWriterAdapter(_RecordedWriter, DataSourceStreamArrowWriter):
    """The adapter of a writer of record batches."""


def _rebuilt(kind: type, ticket: dict[str, Any], writer: bytes) -> Any:
    """Unpickle an adapter: install the instruments, import the user's file, then unpickle the user's writer."""
    unpacked = Ticket.from_json(ticket)
    ready(unpacked)
    load(unpacked.file)
    return kind(unpacked, pickle.loads(writer))  # noqa: S301  # pickled by ourselves a moment ago
