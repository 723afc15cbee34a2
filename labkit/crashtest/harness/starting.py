"""Runs code of the user that starts a query itself: `stream.writeStream.format(...)`, `toTable`, or foreachBatch.

While that code runs, its queries get the run's checkpoint and trigger instead of their own.
"""

import functools
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


class Start(NamedTuple):
    """The checkpoint and name suffix that the user's queries get, and the list of the queries started so far."""

    checkpoint: str
    suffix: str
    """A suffix for the query's name, because two queries of a session must not have the same name."""
    started: list["StreamingQuery"]


_starting = threading.local()
"""Its attribute `now` is the `Start` whose code this thread runs; other threads have none."""


@functools.cache
def _replace_starts() -> None:
    """Wrap, once per process, the PySpark methods that start a query, so that queries use the test's checkpoint."""
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    for name, around in (("start", _around_start), ("toTable", _around_start), ("queryName", _around_name)):
        setattr(DataStreamWriter, name, around(getattr(DataStreamWriter, name)))


def _around_start(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def started(self: Any, *arguments: Any, **named: Any) -> Any:
        start: Start | None = getattr(_starting, "now", None)
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
        start: Start | None = getattr(_starting, "now", None)
        return plain(self, queryName + (start.suffix if start else ""))

    return named


def begin(run: Callable[[], Any], start: Start) -> Future[None]:
    """Run the user's code in a new thread, and return a future that is done when the code has returned.

    The code needs a thread because it may wait until its query has ended.
    """
    future: Future[None] = Future()

    def work() -> None:
        try:
            _replace_starts()
            _starting.now = start
            returned = run()
            if not start.started and hasattr(returned, "toTable"):
                returned.start()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)

    threading.Thread(target=work, daemon=True).start()
    return future


def wants_writer(function: Callable[..., Any]) -> bool:
    """Return whether the user's function, by its annotation, expects a DataStreamWriter and not a DataFrame."""
    [parameter, *_] = inspect.signature(function).parameters.values()
    return "DataStreamWriter" in str(parameter.annotation)
