"""A scenario: what runs, on which store, how it commits, and where it is killed. Checked before anything starts.

A scenario is plain data and can be written to JSON and back. This module must not start anything.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from labkit.errors import InvalidInput
from labkit.failpoints import Crash, Order, Strategy, check_crash, nearest, orders, parse_crash
from labkit.files import read_log
from labkit.records import Record
from labkit.sinks import check_capability
from labkit.stores import STORES


def shipped(name: str) -> Path:
    """A file of `data/`: inside an installed package, or beside the package in a checkout."""
    inside = Path(__file__).parent / "data" / name
    return inside if inside.exists() else Path(__file__).parents[1] / "data" / name


HELLO_WORLD_HELLO = shipped("hello_world_hello.jsonl")
"""The three records that every crash in the lab starts with."""

PARTITIONS = 3
"""Shuffle partitions of the small job. With Spark's hash, `hello` and `world` share one of two and part at three."""


class Job(StrEnum):
    """What the streaming query computes."""

    RUNNING = "running"
    """A stateful word count that emits one row (offset, word, running count) for every input record."""


@dataclass(frozen=True)
class Scenario:
    """One run: a job over an input log, a strategy on a store in a commit order, and the planned crashes.

    `crashes[n]` is armed in the nth driver; the driver after the last crash runs to the end.
    """

    input: Path
    strategy: Strategy
    store: str
    order: Order
    crashes: tuple[Crash, ...] = ()
    records_per_batch: int = 1_000
    job: Job = Job.RUNNING

    @property
    def name(self) -> str:
        """A short name for the run folder."""
        parts = [self.strategy.value, self.store]
        if self.order is not Order.NONE:
            parts.append(self.order.value)
        return "-".join([*parts, *(str(crash).replace("@", "-") for crash in self.crashes)])

    def command(self) -> str:
        """The one command that repeats this run."""
        parts = [f"labkit run --sink {self.strategy} --store {self.store}"]
        if self.order is not Order.NONE:
            parts.append(f"--order {self.order}")
        if self.input != HELLO_WORLD_HELLO:
            parts.append(f"--input {shlex.quote(str(self.input))}")
        parts += [f"--crash {crash}" for crash in self.crashes]
        return " ".join([*parts, f"--records-per-batch {self.records_per_batch}"])

    def to_json(self) -> dict[str, Any]:
        """The scenario as plain data."""
        return {
            "job": self.job.value,
            "input": str(self.input),
            "sink": self.strategy.value,
            "store": self.store,
            "order": self.order.value,
            "crashes": [str(crash) for crash in self.crashes],
            "records_per_batch": self.records_per_batch,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Scenario":
        """The scenario that `to_json` gave; checked again. Raises `InvalidInput`."""
        return plan(
            input=Path(data["input"]),
            sink=data["sink"],
            store=data["store"],
            order=None if data["order"] == Order.NONE else data["order"],
            crashes=data["crashes"],
            records_per_batch=data["records_per_batch"],
            job=data["job"],
        )


def plan(
    *,
    input: Path = HELLO_WORLD_HELLO,
    sink: str = "append",
    store: str = "files",
    order: str | None = None,
    crashes: Iterable[str] = (),
    records_per_batch: int = 1_000,
    job: str = "running",
) -> Scenario:
    """A scenario from what a person typed, every name and combination checked. Raises `InvalidInput`."""
    strategy = Strategy(_known("--sink", sink, [member.value for member in Strategy]))
    _known("--store", store, list(STORES))
    check_capability(strategy, store)
    if records_per_batch < 1:
        raise InvalidInput(f"--records-per-batch {records_per_batch}: a batch needs at least 1 record.")
    scenario = Scenario(
        input=input if input == HELLO_WORLD_HELLO else input.absolute(),
        strategy=strategy,
        store=store,
        order=_order(strategy, order),
        crashes=tuple(map(parse_crash, crashes)),
        records_per_batch=records_per_batch,
        job=Job(_known("--job", job, [member.value for member in Job])),
    )
    for crash in scenario.crashes:
        check_crash(crash, strategy, scenario.order)
    if scenario.crashes and scenario.crashes[0].point.in_recovery:
        raise InvalidInput(
            f"--crash {scenario.crashes[0]}: the first driver recovers nothing; crash it elsewhere first."
        )
    return scenario


def _known(option: str, value: str, known: list[str]) -> str:
    if value not in known:
        raise InvalidInput(f"{option} {value}: unknown; {nearest(value, known)}")
    return value


def _order(strategy: Strategy, order: str | None) -> Order:
    possible = orders(strategy)
    if order is None:
        return possible[0]
    _known("--order", order, [Order.ENGINE.value, Order.DECISION.value])
    if Order(order) not in possible:
        raise InvalidInput(f"--order {order}: {strategy} has nothing to defer and takes no order; leave --order out.")
    return Order(order)


def expected_records(words: Iterable[str]) -> Iterator[Record]:
    """What the job `running` should emit: for every word its offset and its running count."""
    counts: Counter[str] = Counter()
    for offset, word in enumerate(words):
        counts[word] += 1
        yield Record(offset, word, counts[word])


def check_input(scenario: Scenario) -> int:
    """Reads the whole input once and returns how many records it has.

    Raises `InvalidInput` for a bad line, or for a crash in a batch that the input does not reach.
    """
    records = sum(1 for _ in read_log(scenario.input))
    batches = -(-records // scenario.records_per_batch)
    for crash in scenario.crashes:
        if crash.batch >= batches:
            raise InvalidInput(
                f"--crash {crash}: the input makes {batches} batch(es) of {scenario.records_per_batch} record(s), "
                f"so the last one is {batches - 1}."
            )
    return records


def without_crashes(scenario: Scenario) -> Scenario:
    """The same scenario, left alone: the run to compare with."""
    return replace(scenario, crashes=())
