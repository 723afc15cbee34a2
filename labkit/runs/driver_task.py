"""The message that tells a driver process how to set up its Spark session and which queries to run."""

from typing import Any

from msgspec import Struct

from labkit.spark.options import Job

ACTIVE = 2
"""The number of queries that one driver runs at a time; queries that wait at a failpoint do not count."""
PATIENCE = 240.0
"""The seconds without an event after which labkit gives up a driver and marks its runs as failed."""


class Socket(Struct, frozen=True):
    """The address of the local server that sends input lines to a query with Spark's socket source."""

    port: int
    lines: int
    """The number of lines that the server sends to this driver."""


class QueryTask(Struct, frozen=True):
    """The message that makes a driver process execute one query, from its beginning or after the crash of a driver."""

    name: str
    folder: str
    """The path of the run's folder."""
    driver: int
    """The number of the driver among the drivers of this run, from 1."""
    scenario: dict[str, Any]
    """The options of the run, in the form of `Scenario.to_json`."""
    armed: dict[str, Any] | None
    """The failpoint at which to stop, in the form of `Armed.to_json`; None for a driver that runs to the end."""
    socket: Socket | None


class DriverTask(Struct, frozen=True):
    """The message to a new driver process: the settings of its Spark session, and the queries to execute."""

    master: str
    profile: str
    """The name of the Spark settings: one of `labkit.spark.session.PROFILES`, or `stock`."""
    active: int
    """The number of queries that the driver runs at a time."""
    archive: bool
    """Whether the driver's JVM loads the class-data archive, which makes it start faster, if there is one."""
    queries: list[QueryTask]
    standby: Job | None = None
    """The job with which a standby driver warms up before it waits for its queries; None for any other driver."""
