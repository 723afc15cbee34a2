"""What a driver of word-count runs is told: its session, and the queries that it carries."""

from typing import Any

from msgspec import Struct

from labkit.spark.options import Job


class Socket(Struct, frozen=True):
    """The server that feeds a query."""

    port: int
    lines: int
    """How many it sends to this driver."""


class QueryTask(Struct, frozen=True):
    """One query: the next driver of a run."""

    name: str
    folder: str
    """The run's folder."""
    driver: int
    """Which driver of its run this is, from 1."""
    scenario: dict[str, Any]
    """As `Scenario.to_json` gives it."""
    armed: dict[str, Any] | None
    """The failpoint, as `Armed.to_json` gives it; None for a driver that runs to the end."""
    socket: Socket | None


class DriverTask(Struct, frozen=True):
    """One driver."""

    master: str
    profile: str
    """One of `labkit.spark.session.PROFILES`, or `stock`."""
    active: int
    """Queries that it works on at a time."""
    archive: bool
    """Whether its JVM uses the class-data archive, where there is one."""
    queries: list[QueryTask]
    standby: Job | None = None
    """The job that it gets warm with before it waits for its queries; None: it waits for nothing."""
    memory: bool = False
    """Whether it runs the query of `labkit.runs.memory` instead."""
