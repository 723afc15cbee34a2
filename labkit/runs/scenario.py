"""A scenario: what runs, on which store, how it commits, and where it is killed. Checked before anything starts.

A scenario is plain data and can be written to JSON and back. This module must not start anything.
"""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import (
    Crash,
    Order,
    Strategy,
    check_crash,
    orders,
    parse_crash,
)
from labkit.core.words import nearest
from labkit.host.servers import SERVICES
from labkit.runs.counting import Count, Each, Running, Totals
from labkit.sinks import check_capability
from labkit.spark.master import Victim, check_master, check_victim
from labkit.spark.options import (
    MOST_PARTITIONS,
    NOT_REPLAYABLE,
    OF_THE_SOURCE,
    PARTITIONS,
    STATEFUL,
    Between,
    Job,
    Keep,
    State,
    default_input,
    default_state,
)
from labkit.stores import STORES, capabilities

_QUERY = re.compile(r"[a-z][a-z0-9_]{0,30}")


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
    state: State = State.ROCKSDB
    checkpoint: Keep = Keep.KEPT
    query: str | None = None
    later_records_per_batch: int | None = None
    partitions: int = PARTITIONS
    """Tasks that write each batch."""
    later_partitions: int | None = None
    between: Between = Between.NOTHING
    master: str | None = None
    """Of a cluster, whose executors are processes of their own; None: threads of the driver."""
    victim: Victim = Victim.DRIVER
    commit_group: bool = False

    def batch_size(self, driver: int) -> int:
        """Records in one micro-batch that the nth driver plans, from 1."""
        return (
            self.records_per_batch
            if driver == 1
            else self.later_records_per_batch or self.records_per_batch
        )

    def tasks(self, driver: int) -> int:
        """Tasks that write each batch of the nth driver, from 1."""
        return (
            self.partitions if driver == 1 else self.later_partitions or self.partitions
        )

    @property
    def most_tasks(self) -> int:
        """Tasks of one batch in the driver that has most of them."""
        return max(self.tasks(1), self.tasks(2))

    @cached_property
    def count(self) -> Count:
        """What should come out, counted without Spark."""
        if self.job is Job.TOTALS:
            return Totals(self.input, self.records_per_batch)
        return Each(self.input) if self.job is Job.SOCKET else Running(self.input)

    @property
    def note(self) -> str:
        """What bounds the verdict whatever the sink does; empty where nothing does."""
        return NOT_REPLAYABLE if self.job is Job.SOCKET else ""

    @property
    def name(self) -> str:
        """A short name for the run folder."""
        parts = [] if self.job is Job.RUNNING else [self.job.value]
        parts += [self.strategy.value, self.store]
        if self.order is not Order.NONE:
            parts.append(self.order.value)
        if self.victim is not Victim.DRIVER:
            parts.append(self.victim.value)
        return "-".join(
            [*parts, *(str(crash).replace("@", "-") for crash in self.crashes)]
        )

    def command(self) -> str:
        """The one command that repeats this run."""
        parts = [f"labkit run --sink {self.strategy} --store {self.store}"]
        if self.job is not Job.RUNNING:
            parts.append(f"--job {self.job}")
        if self.order is not Order.NONE:
            parts.append(f"--order {self.order}")
        if self.input != default_input(self.job):
            parts.append(f"--input {shlex.quote(str(self.input))}")
        parts += [f"--crash {crash}" for crash in self.crashes]
        parts.append(f"--records-per-batch {self.records_per_batch}")
        options: dict[str, tuple[object, object]] = {
            "--state": (self.state, default_state(self.job)),
            "--query": (self.query, None),
            "--later-records-per-batch": (self.later_records_per_batch, None),
            "--partitions": (self.partitions, PARTITIONS),
            "--later-partitions": (self.later_partitions, None),
            "--between": (self.between, Between.NOTHING),
            "--master": (self.master, None),
            "--victim": (self.victim, Victim.DRIVER),
        }
        if self.checkpoint is not Keep.KEPT:
            parts.append("--delete-checkpoint")
        parts += [
            f"{option} {shlex.quote(str(value))}"
            for option, (value, usual) in options.items()
            if value != usual
        ]
        if self.commit_group:
            parts.append("--commit-group")
        return " ".join(parts)

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
            "state": self.state.value,
            "checkpoint": self.checkpoint.value,
            "query": self.query,
            "later_records_per_batch": self.later_records_per_batch,
            "partitions": self.partitions,
            "later_partitions": self.later_partitions,
            "between": self.between.value,
            "master": self.master,
            "victim": self.victim.value,
            "commit_group": self.commit_group,
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
            state=data["state"],
            delete_checkpoint=data["checkpoint"] == Keep.DELETED,
            query=data["query"],
            later_records_per_batch=data["later_records_per_batch"],
            partitions=data.get("partitions", PARTITIONS),
            later_partitions=data.get("later_partitions"),
            between=data.get("between", Between.NOTHING.value),
            master=data.get("master"),
            victim=data.get("victim", Victim.DRIVER.value),
            commit_group=data.get("commit_group", False),
        )


def plan(
    *,
    input: Path | None = None,
    sink: str = "append",
    store: str = "files",
    order: str | None = None,
    crashes: Iterable[str] = (),
    records_per_batch: int = 1_000,
    job: str = "running",
    state: str | None = None,
    delete_checkpoint: bool = False,
    query: str | None = None,
    later_records_per_batch: int | None = None,
    partitions: int = PARTITIONS,
    later_partitions: int | None = None,
    between: str = Between.NOTHING.value,
    master: str | None = None,
    victim: str = "driver",
    commit_group: bool = False,
) -> Scenario:
    """A scenario from what a person typed, every name and combination checked. Raises `InvalidInput`."""
    wanted = Job(_known("--job", job, [member.value for member in Job]))
    strategy = Strategy(_known("--sink", sink, [member.value for member in Strategy]))
    _known("--store", store, list(STORES))
    check_capability(strategy, store)
    _check_batch("--records-per-batch", records_per_batch)
    scenario = Scenario(
        input=default_input(wanted) if input is None else input.absolute(),
        strategy=strategy,
        store=store,
        order=_order(strategy, order),
        crashes=tuple(map(parse_crash, crashes)),
        records_per_batch=records_per_batch,
        job=wanted,
        state=_state(wanted, state),
        checkpoint=Keep.DELETED if delete_checkpoint else Keep.KEPT,
        query=_query(query),
        later_records_per_batch=_later(wanted, later_records_per_batch),
        partitions=_tasks("--partitions", wanted, partitions),
        later_partitions=None
        if later_partitions is None
        else _tasks("--later-partitions", wanted, later_partitions),
        between=_between(between, store, wanted),
        master=master,
        victim=Victim(_known("--victim", victim, [member.value for member in Victim])),
        commit_group=commit_group,
    )
    if commit_group and wanted is not Job.KAFKA:
        raise InvalidInput(
            "--commit-group: only a job that reads Kafka has a consumer group; use --job kafka."
        )
    if delete_checkpoint and not scenario.crashes:
        raise InvalidInput(
            "--delete-checkpoint: it is deleted after a crash; name one with --crash."
        )
    if scenario.between is not Between.NOTHING and not scenario.crashes:
        raise InvalidInput(
            f"--between {between}: it happens after a crash; name one with --crash."
        )
    if later_partitions is not None and not scenario.crashes:
        raise InvalidInput(
            f"--later-partitions {later_partitions}: it is for after a crash; name one with --crash."
        )
    for crash in scenario.crashes:
        check_crash(crash, strategy, scenario.order)
    _check_cluster(scenario)
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
        raise InvalidInput(
            f"--order {order}: {strategy} has nothing to defer and takes no order; leave --order out."
        )
    return Order(order)


def _check_batch(option: str, records: int) -> None:
    if records < 1:
        raise InvalidInput(f"{option} {records}: a batch needs at least 1 record.")


def _state(job: Job, state: str | None) -> State:
    if state is None:
        return default_state(job)
    wanted = State(_known("--state", state, [member.value for member in State]))
    if job in STATEFUL and wanted is not State.ROCKSDB:
        raise InvalidInput(
            f"--state {state}: the job {job} needs rocksdb (transformWithState); use --job totals."
        )
    return wanted


def _query(query: str | None) -> str | None:
    if query is not None and not _QUERY.fullmatch(query):
        raise InvalidInput(
            f"--query {query[:40]}: write a name of small letters, digits and _, as in counts_1."
        )
    return query


def _between(between: str, store: str, job: Job) -> Between:
    wanted = Between(_known("--between", between, [member.value for member in Between]))
    if wanted in OF_THE_SOURCE and job is not Job.KAFKA:
        raise InvalidInput(
            f"--between {between}: it happens to a Kafka topic that is read; use --job kafka."
        )
    if wanted not in (Between.NOTHING, *OF_THE_SOURCE) and store not in SERVICES:
        raise InvalidInput(
            f"--between {between}: the store {store} has no server; use --store {', '.join(SERVICES)}."
        )
    if wanted is Between.EXPIRE and "Expiring" not in capabilities(store):
        able = ", ".join(name for name in STORES if "Expiring" in capabilities(name))
        raise InvalidInput(
            f"--between {between}: {store} keeps a transaction for ever; use --store {able}."
        )
    return wanted


def _later(job: Job, records: int | None) -> int | None:
    if records is None:
        return None
    _check_batch("--later-records-per-batch", records)
    if job not in STATEFUL:
        raise InvalidInput(
            "--later-records-per-batch: only the jobs running and kafka may change their batches."
        )
    return records


def _tasks(option: str, job: Job, tasks: int) -> int:
    if not 1 <= tasks <= MOST_PARTITIONS:
        raise InvalidInput(
            f"{option} {tasks}: a batch is written by 1 to {MOST_PARTITIONS} tasks."
        )
    if tasks != PARTITIONS and job not in STATEFUL:
        raise InvalidInput(
            f"{option}: only the jobs running and kafka may have other numbers of tasks."
        )
    return tasks


def _check_cluster(scenario: Scenario) -> None:
    """What a master that is not local can do, and who can be killed there."""
    if scenario.master is not None:
        if scenario.job is Job.SOCKET:
            raise InvalidInput(
                "--master: the job socket runs on this machine's threads only; leave --master out."
            )
        check_master(
            scenario.master,
            scenario.crashes if scenario.job is Job.RUNNING else (),
            scenario.most_tasks,
        )
    in_tasks = (
        scenario.job is Job.RUNNING and scenario.strategy is not Strategy.BATCH_MARKER
    )
    check_victim(scenario.victim, scenario.master, scenario.crashes, in_tasks=in_tasks)


def check_input(scenario: Scenario) -> int:
    """Reads the whole input once and returns how many records it has.

    Raises `InvalidInput` for a bad line, or for a crash in a batch that the input does not reach.
    """
    records = scenario.count.check()
    if scenario.job is Job.SOCKET:
        return records  # no admission control: how many lines a batch will have is not known
    batches = -(-records // scenario.records_per_batch)
    for crash in scenario.crashes:
        if crash.batch >= batches:
            raise InvalidInput(
                f"--crash {crash}: the input makes {batches} batch(es) of {scenario.records_per_batch} record(s), "
                f"so the last one is {batches - 1}."
            )
    return records
