"""Records that the user's code has the JVM write a DataFrame: the call as a whole, since nothing inside is seen."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder

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
