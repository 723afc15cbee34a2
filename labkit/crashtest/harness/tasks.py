"""What a driver under test is told: how Spark calls the sink, and the queries that it runs, one after the other.

This module must not know how any of it is done.
"""

from msgspec import Struct

from labkit.crashtest.harness.subject import Adapter
from labkit.crashtest.instrument.recorder import Ticket


class DriverTask(Struct, frozen=True):
    """One driver."""

    adapter: Adapter
    cwd: str
    """The folder in which the user's file expects to run."""
    conf: dict[str, str] = {}
    jars: list[str] = []
    """What the user's session needs (`labkit.crashtest.spark_options`)."""


class QueryTask(Struct, frozen=True):
    """One query on the user's sink."""

    name: str
    ticket: Ticket
    checkpoint: str
    input: str
    schema: str | None
    """Of the rows, as Spark writes it; None: Spark is to find out."""
    adapter: Adapter
    sink: str
    """The name in the user's file."""
    options: dict[str, str]
    limit: float
    """Seconds without progress after which the query is said to hang."""
