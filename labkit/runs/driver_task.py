"""The task of a driver process: how to set up its session, and the queries to run."""

from typing import Any

from msgspec import Struct

from labkit.spark.options import Job


class Socket(Struct, frozen=True):
    """The local server that sends lines to a query with a socket source."""

    port: int
    lines: int
    """The number of lines that it sends to this driver."""


class QueryTask(Struct, frozen=True):
    """One query of a driver: the continuation of a run in its next driver."""

    name: str
    folder: str
    """The path of the run's folder."""
    driver: int
    """The number of this driver in its run, from 1."""
    scenario: dict[str, Any]
    """The scenario in the form of `Scenario.to_json`."""
    armed: dict[str, Any] | None
    """The failpoint in the form of `Armed.to_json`; None for a driver that runs to the end."""
    socket: Socket | None


class DriverTask(Struct, frozen=True):
    """The task of one driver."""

    master: str
    profile: str
    """One of `labkit.spark.session.PROFILES`, or `stock`."""
    active: int
    """The number of queries that the driver runs at a time."""
    archive: bool
    """Whether the driver's JVM uses the class-data archive if there is one."""
    queries: list[QueryTask]
    standby: Job | None = None
    """The job with which a standby driver warms up before it waits for its queries; None for any other driver."""
    memory: bool = False
    """Whether the driver runs the query of `labkit.runs.memory` in place of `queries`."""
