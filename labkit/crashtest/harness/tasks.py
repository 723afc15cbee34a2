"""Orders for a Spark driver under test: how Spark calls the sink, and the queries that the driver runs."""

from msgspec import Struct

from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.subject import Adapter


class DriverTask(Struct, frozen=True):
    """The settings of one Spark driver under test."""

    adapter: Adapter
    cwd: str
    """The folder in which the user's file expects to run."""
    conf: dict[str, str] = {}
    jars: list[str] = []
    """The jars of the user's session; together with `conf` its configuration (`labkit.crashtest.spark_options`)."""


class QueryTask(Struct, frozen=True):
    """The order to run one query on the user's sink."""

    name: str
    ticket: Ticket
    checkpoint: str
    input: str
    schema: str | None
    """The schema of the rows in Spark's notation; if None, Spark infers it."""
    adapter: Adapter
    sink: str
    """The name of the sink in the user's file, or the name of a format or table that Spark knows."""
    options: dict[str, str]
    limit: float
    """The number of seconds without progress after which the query counts as hanging."""
