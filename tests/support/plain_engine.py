"""Spark's order of steps around a sink, in plain Python: enough engine to crash a sink thousands of times a minute.

It has the two logs, the tasks in partition order, and the notification. Each driver is a forked child of its own
that kills itself with a real SIGKILL where a point is armed. The rows are those of hello, world, hello on Spark: with
three partitions, partition 1 has world and partition 2 has both hellos.
"""

import os
import signal
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record
from labkit.core.strategies import Strategy
from labkit.sinks import coordinate
from labkit.sinks.coordinator import Coordinator
from labkit.stores import open_store
from labkit.stores.contract import Handle

EXPECTED = [Record(0, "hello", 1), Record(1, "world", 1), Record(2, "hello", 2)]
PARTITIONS: list[list[Record]] = [[], [EXPECTED[1]], [EXPECTED[0], EXPECTED[2]]]
QUERY = "plain"


class NeverReached(AssertionError):
    """The driver ran to its end instead of dying at its point."""


@dataclass
class PlainEngine:
    """One query with one micro-batch, over any number of drivers."""

    folder: Path
    strategy: Strategy
    store: str
    order: Order
    notified: bool = True
    drivers: int = 0
    readings: list[tuple[str, int]] = field(default_factory=list)

    def drive(self, crash: Crash | None = None) -> int:
        """One driver in a child process, to its end or to its death; the signal that it died by, 0 for none."""
        self.drivers += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        child = os.fork()
        if child == 0:
            self._live_and_exit(crash)
        _, status = os.waitpid(child, 0)
        died_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        assert died_by or os.WEXITSTATUS(status) == 0, "the driver failed; its traceback is above"
        if died_by:
            self.readings.append((f"crash {len(self.readings) + 1}", len(self.seen())))
        return died_by

    def verdict(self) -> Verdict:
        """What the judge says of everything that could be seen so far."""
        store = open_store(self.store, self.location)
        hidden = list(store.hidden())
        store.close()
        keyed = self.strategy.facts.replaces
        return judge(EXPECTED, History(self._events(), keyed, (PlannedBatch(0, 0, 3),), hidden))

    def seen(self) -> list[Observation]:
        """Every row that was ever visible."""
        store = open_store(self.store, self.location)
        rows = list(store.history())
        store.close()
        return rows

    @property
    def location(self) -> Path:
        return self.folder / ("store.sqlite" if self.store == "sqlite" else "store")

    def _events(self) -> Iterator[Observation | Reading]:
        waiting = list(self.readings)
        rows = self.seen()
        for position in range(len(rows) + 1):
            while waiting and waiting[0][1] == position:
                yield Reading(waiting.pop(0)[0])
            if position < len(rows):
                yield rows[position]
        yield Reading("end")

    def _live_and_exit(self, crash: Crash | None) -> None:
        code = 1
        try:
            self._live(crash)
            code = 0
        except Exception:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)

    def _coordinator(self, crash: Crash | None) -> Coordinator:
        """The query's coordinator in one driver, which kills itself at the armed point."""

        def reach(point: FailPoint, batch: int) -> None:
            if crash is not None and (point, batch) == crash:
                os.kill(os.getpid(), signal.SIGKILL)

        return coordinate(
            self.strategy,
            self.order,
            store=self.store,
            location=self.location,
            query=QUERY,
            incarnation=self.drivers,
            log=self.folder / "log",
            reach=reach,
        )

    def _live(self, crash: Crash | None) -> None:
        coordinator = self._coordinator(crash)
        finished = self.folder / "commits-0"
        list(coordinator.recover(0 if finished.exists() else None))
        if not finished.exists():
            self._run_batch(coordinator)
            finished.touch()
        if self.notified:
            coordinator.commit_log_durable(0)

    def _run_batch(self, coordinator: Coordinator) -> None:
        coordinator.reach(FailPoint.AFTER_OFFSET_LOG, 0)
        last = max(number for number, records in enumerate(PARTITIONS) if records)
        votes = []
        for number, records in enumerate(PARTITIONS):
            coordinator.sink.reach = coordinator.reach if number == last else _but_mid_write(coordinator)
            rows = (Observation(*record, 0, self.drivers) for record in records)
            vote = coordinator.sink.pre_commit(Handle(QUERY, 0, number, self.drivers, number), rows)
            votes += [vote] if vote else []
        coordinator.sink.reach = coordinator.reach
        coordinator.commit(0, votes)


def _but_mid_write(coordinator: Coordinator):
    def reach(point: FailPoint, batch: int) -> None:
        if point is not FailPoint.MID_WRITE:
            coordinator.reach(point, batch)

    return reach


def crashed(folder: Path, strategy: Strategy, store: str, order: Order, points: Sequence[FailPoint]) -> PlainEngine:
    """A query that was killed at each point in turn, the nth for the nth driver, and then ran to its end."""
    engine = PlainEngine(folder, strategy, store, order)
    for point in points:
        if engine.drive(Crash(point)) != signal.SIGKILL:
            raise NeverReached(point)
    assert engine.drive() == 0
    return engine
