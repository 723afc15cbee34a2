"""Orders for a driver under test: how Spark calls the sink, and the queries that the driver runs."""

from msgspec import Struct

from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.subject import Adapter


class DriverTask(Struct, frozen=True):
    """The settings of one driver."""

    adapter: Adapter
    cwd: str
    """The folder in which the user's file expects to run."""
    conf: dict[str, str] = {}
    jars: list[str] = []
    """`conf` and `jars` are what the user's session needs (`labkit.crashtest.spark_options`)."""


class QueryTask(Struct, frozen=True):
    """One query on the user's sink."""

    name: str
    ticket: Ticket
    checkpoint: str
    input: str
    schema: str | None
    """The schema of the rows, as Spark writes it; None: Spark infers it."""
    adapter: Adapter
    sink: str
    """The name in the user's file, or of a format or a table."""
    options: dict[str, str]
    limit: float
    """Seconds without progress after which the query counts as hanging."""
