"""Records that the user's code makes the JVM write a DataFrame, as one effect, because the JVM's steps are
not visible.
"""

import functools
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder
from labkit.crashtest.instrument.sql import short

_NOT_KEPT = re.compile(r"\s*create\s+(or\s+replace\s+)?(global\s+)?temp(orary)?\b", re.IGNORECASE)
_WRITES = re.compile(
    r"\s*(?:insert|merge|update|delete|truncate|replace|load|call|drop)\b"
    r"|\s*(?:with|from)\b.*\b(?:insert|merge)\b|\s*create\b.*\bselect\b",
    re.IGNORECASE | re.DOTALL,
)
_DEFINES = re.compile(r"\s*(?:create|alter)\b", re.IGNORECASE)


def kind_of_spark(sql: str) -> Kind | None:
    """Return the kind of effect of a Spark SQL statement, by its words; None if it makes nothing durable."""
    if _NOT_KEPT.match(sql):
        return None
    if _WRITES.match(sql):
        return Kind.JVM
    return Kind.SCHEMA if _DEFINES.match(sql) else None


WRITER = ("save", "insertInto", "saveAsTable", "json", "parquet", "text", "csv", "xml", "orc", "jdbc")
WRITER_V2 = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")


def instrument_writer(module: ModuleType) -> None:
    """Make the methods of DataFrameWriter and DataFrameWriterV2 that write record their effects."""
    for owner, names in ((module.DataFrameWriter, WRITER), (module.DataFrameWriterV2, WRITER_V2)):
        for name in names:
            if hasattr(owner, name) and not hasattr(getattr(owner, name), "recorded"):
                setattr(owner, name, _around(getattr(owner, name), name))


def instrument_session(module: ModuleType) -> None:
    """Make `SparkSession.sql` record the statements that change something."""
    plain = module.SparkSession.sql
    if hasattr(plain, "recorded"):
        return

    @functools.wraps(plain)
    def recorded(self: Any, sqlQuery: str, *arguments: Any, **named: Any) -> Any:
        kind = kind_of_spark(sqlQuery)
        if kind is None:
            return plain(self, sqlQuery, *arguments, **named)
        with recorder.effect(kind, short(sqlQuery)):
            return plain(self, sqlQuery, *arguments, **named)

    recorded.recorded = True  # type: ignore[attr-defined]  # a mark on a function
    module.SparkSession.sql = recorded


def instrument_merge(module: ModuleType) -> None:
    """Make `MergeIntoWriter.merge`, the last call of a `DataFrame.mergeInto`, record its effect."""
    writer = module.MergeIntoWriter
    if not hasattr(writer.merge, "recorded"):
        writer.merge = _around(writer.merge, "merge")


def _around(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def recorded(self: Any, *arguments: Any, **named: Any) -> Any:
        with recorder.effect(Kind.JVM, arguments[0] if arguments and isinstance(arguments[0], str) else name):
            return method(self, *arguments, **named)

    recorded.recorded = True  # type: ignore[attr-defined]  # a mark on a function
    return recorded
