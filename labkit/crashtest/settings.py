"""The options for the crash test of a sink, which are checked before anything starts."""

import re
import shlex
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.core.errors import InvalidInput
from labkit.core.kinds import Checked, Many, Number, Text, Unfit
from labkit.core.options import option
from labkit.crashtest.options import Named, SharedOptions
from labkit.crashtest.subject import BY_NAME, Adapter, Subject
from labkit.host.path_kinds import ExistingFile

if TYPE_CHECKING:
    from labkit.crashtest.spark_options import SparkOptions

MOST_BATCHES = 5
"""The maximum number of batches of a test, because each batch of each query needs its own digit in a 64-bit sum."""

OURS = {
    "spark.master": "the test runs its tasks one after the other in one process",
    "spark.submit.deployMode": "the driver is what the test kills",
    "spark.remote": "the test starts its own driver",
    "spark.api.mode": "the test starts its own driver",
    "spark.driver.host": "the test talks over loopback only",
    "spark.driver.bindAddress": "the test talks over loopback only",
    "spark.local.dir": "each driver has a folder of its own, which is removed",
    "spark.python.daemon.module": "the test recognises Spark's Python workers by this setting",
    "spark.python.use.daemon": "the test recognises Spark's Python workers by this setting",
    "spark.pyspark.python": "tasks run the interpreter of the test",
    "spark.pyspark.driver.python": "tasks run the interpreter of the test",
    "spark.sql.streaming.checkpointLocation": "each run has a checkpoint of its own",
    "spark.sql.streaming.noDataMicroBatches.enabled": "a batch without rows would move every crash point",
    "spark.sql.files.minPartitionNum": "the test gives each batch to two tasks",
    "spark.jars": "name jars with --jars",
    "spark.jars.packages": "name packages with --packages",
    "spark.driver.extraClassPath": "name jars with --jars",
    "spark.executor.extraClassPath": "name jars with --jars",
}
"""Spark settings that only the test may set, each with the reason or the option to use instead."""

_MEMORY = re.compile(r"(\d+[kmgt])b?", re.IGNORECASE)
_PACKAGE = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+")


def _pair(text: str) -> str:
    name, equals, _ = text.partition("=")
    if not name or not equals:
        raise Unfit("this is not of the form name=value; write it as in --option path=out.")
    return text


def _setting(text: str) -> str:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark.") or key != key.strip():
        raise Unfit("this is not a Spark setting; write spark.key=value, as in --conf spark.sql.session.timeZone=UTC.")
    if key in OURS:
        reason = OURS[key]
        raise Unfit(f"the test sets this Spark setting itself, so leave it out; {reason}.", key)
    if key == "spark.driver.memory" and not _MEMORY.fullmatch(value):
        raise Unfit("this is not an amount of memory for Spark; write it as in spark.driver.memory=2g.")
    if key == "spark.driver.extraJavaOptions":
        try:
            shlex.split(value)
        except ValueError as error:
            raise Unfit(
                f"these Java options cannot be split into words ({error}); close every quotation mark."
            ) from None
    return text


def _jar(path: str) -> str:
    file = Path(path).expanduser()
    if not file.is_file():
        raise Unfit("there is no such file; name a jar.")
    if not zipfile.is_zipfile(file):
        raise Unfit("this file is not a jar (a zip file); name a jar.")
    return str(file.resolve())


def _package(text: str) -> str:
    if not _PACKAGE.fullmatch(text):
        raise Unfit(
            "this is not a Maven package; write group:artifact:version, as in org.postgresql:postgresql:42.7.8."
        )
    return text


@dataclass(frozen=True)
class Settings(SharedOptions):
    """The options of the crash test of a Spark sink, as `labkit crashtest FILE:NAME` takes them."""

    KIND = "a sink, FILE:NAME"

    sink: Subject | None = option(
        Named(),
        None,
        "A foreachBatch function, ForeachWriter, Python DataSource, or a function that gets the stream and "
        "starts a query. package.module:NAME works as well. Default: the sink that pyproject.toml names.",
        keyword="subject",
        argument="FILE:NAME",
        names_subject=True,
        instead_of=["sink_format", "table", "command"],
        check=lambda test: test.check_subject(),
    )
    sink_format: str = option(
        Text(metavar="NAME"),
        "",
        "Instead of FILE:NAME: the sink is writeStream.format(NAME).",
        flag_name="format",
        json="format",
        names_subject=True,
        instead_of=["subject", "table", "command"],
    )
    table: str = option(
        Text(metavar="NAME"),
        "",
        "Instead of FILE:NAME: the sink is writeStream.toTable(NAME).",
        names_subject=True,
        instead_of=["subject", "sink_format", "command"],
    )
    batches: int = option(
        Number(1, MOST_BATCHES, f"choose 1 to {MOST_BATCHES} batches: two show most faults, three a few more."),
        3,
        "The number of batches of the job.",
    )
    rows: Path | None = option(
        ExistingFile("FILE"),
        None,
        "A JSON Lines file with your own rows, each with a whole number as id. Default: generated rows.",
    )
    pairs: tuple[str, ...] = option(
        Many(Checked(_pair, "NAME=VALUE")),
        (),
        "An option for a data source, a format or a table; may be repeated.",
        keyword="options",
        flag_name="option",
    )
    conf: tuple[str, ...] = option(
        Many(Checked(_setting, "KEY=VALUE")), (), "Configuration for the test's Spark sessions; may be repeated."
    )
    jars: tuple[str, ...] = option(Many(Checked(_jar, "PATHS"), ","), (), "Jars for the sessions, separated by commas.")
    packages: tuple[str, ...] = option(
        Many(Checked(_package, "COORDINATES"), ","), (), "Maven packages, group:artifact:version, separated by commas."
    )

    @property
    def adapter(self) -> Adapter | None:
        """The interface by which Spark calls the sink, such as foreachBatch.

        It is None for a sink in the user's file, because the file must first be imported to see its interface.
        """
        return Adapter.FORMAT if self.sink_format else Adapter.TABLE if self.table else None

    @cached_property
    def subject(self) -> Subject:
        """The sink under test: a file and a name in it.

        A Spark format or table has no file of its own. For such a sink, the name is that of the format or table, and
        the file is that of the user's reader.
        """
        if self.sink is not None:
            return self.sink
        assert self.reader is not None
        name = self.sink_format or self.table
        return Subject(self.reader.file, name, f"{self.adapter} {name}")

    @property
    def usual_reader(self) -> Subject | None:
        """The default of `--reader`: the function `read` in the sink's file. None for a Spark format or table."""
        return None if self.sink is None else Subject(self.sink.file, "read")

    @property
    def options(self) -> dict[str, str]:
        """A dict from name to value of the user's options `--option NAME=VALUE` for a data source, format or table."""
        return _pairs(self.pairs)

    @cached_property
    def spark(self) -> "SparkOptions":
        """The user's configuration, jars and packages for the Spark sessions of the test."""
        from labkit.crashtest.spark_options import SparkOptions

        return SparkOptions(_pairs(self.conf), self.jars, self.packages)

    def check_subject(self) -> None:
        """Raise `InvalidInput` unless the options name exactly one sink, and a reader for its rows."""
        named = [each for each in (self.sink, self.sink_format, self.table) if each]
        if len(named) > 1:
            raise InvalidInput(f"{' and '.join(map(str, named))} are {len(named)} sinks; name one of them.")
        if not named:
            raise InvalidInput(
                "nothing to test: name a sink (FILE:NAME, as in sink.py:write_batch, --format NAME or --table NAME), "
                "or a pipeline by --command CMD."
            )
        if self.adapter in BY_NAME and self.reader is None:
            raise InvalidInput(
                f"--{self.adapter}: the test needs a function that reads the rows; add --reader FILE:NAME."
            )


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def settings(subject: str = "", **words: Any) -> Settings:
    """Return the settings of the test of the sink `subject` (`FILE:NAME`). Raises `InvalidInput` for bad options."""
    return Settings.plan({"subject": subject or None, **words})
