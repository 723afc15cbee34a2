"""Records that the user's code has the JVM write a DataFrame: the call as a whole, since nothing inside is seen."""

import functools
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder
from labkit.crashtest.instrument.sql import short

_WRITES = re.compile(
    r"\s*(?:(insert|merge|update|delete|truncate|replace|load|call|drop)\b"
    r"|(?:with|from|create)\b.*\b(?:insert|merge|select)\b|(create|alter)\b)",
    re.IGNORECASE | re.DOTALL,
)
"""Spark SQL that changes something; the second group only makes or alters a table."""
WRITER = (
    "save",
    "insertInto",
    "saveAsTable",
    "json",
    "parquet",
    "text",
    "csv",
    "xml",
    "orc",
    "jdbc",
)
WRITER_V2 = (
    "create",
    "replace",
    "createOrReplace",
    "append",
    "overwrite",
    "overwritePartitions",
)


def tap_writer(module: ModuleType) -> None:
    """Wraps the methods of DataFrameWriter and DataFrameWriterV2 that write."""
    for owner, names in (
        (module.DataFrameWriter, WRITER),
        (module.DataFrameWriterV2, WRITER_V2),
    ):
        for name in names:
            if hasattr(owner, name) and not hasattr(getattr(owner, name), "recorded"):
                setattr(owner, name, _around(getattr(owner, name), name))


def tap_session(module: ModuleType) -> None:
    """Wraps `SparkSession.sql`, for the statements that change something."""
    plain = module.SparkSession.sql
    if hasattr(plain, "recorded"):
        return

    @functools.wraps(plain)
    def recorded(self: Any, sqlQuery: str, *arguments: Any, **named: Any) -> Any:
        found = _WRITES.match(sqlQuery)
        if found is None:
            return plain(self, sqlQuery, *arguments, **named)
        kind = Kind.SCHEMA if found[2] else Kind.JVM
        with recorder.effect(kind, short(sqlQuery)):
            return plain(self, sqlQuery, *arguments, **named)

    recorded.recorded = True  # type: ignore[attr-defined]
    module.SparkSession.sql = recorded


def tap_merge(module: ModuleType) -> None:
    """Wraps `MergeIntoWriter.merge`, by which `DataFrame.mergeInto` ends."""
    writer = module.MergeIntoWriter
    if not hasattr(writer.merge, "recorded"):
        writer.merge = _around(writer.merge, "merge")


def _around(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def recorded(self: Any, *arguments: Any, **named: Any) -> Any:
        with recorder.effect(
            Kind.JVM,
            arguments[0] if arguments and isinstance(arguments[0], str) else name,
        ):
            return method(self, *arguments, **named)

    recorded.recorded = True  # type: ignore[attr-defined]
    return recorded
