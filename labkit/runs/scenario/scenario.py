"""Declare every option of a run once, as a field of `Scenario`.

A new option is a new field here and the code that uses it. A scenario is plain data and round-trips through JSON.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.kinds import Key, Name, NamedSwitch, Number, Switch, Text
from labkit.core.options import Need, Options, Part, option
from labkit.core.strategies import POINTS, Strategy, orders
from labkit.host.path_kinds import InputFile
from labkit.host.servers import SERVICES
from labkit.runs.counting import Count, Ones, Prices, RunningCounts, Totals
from labkit.runs.scenario import checks
from labkit.runs.scenario.crashes import Crashes
from labkit.spark.master import Victim
from labkit.spark.options import (
    HELLO_WORLD_HELLO,
    MOST_PARTITIONS,
    NOT_REPLAYABLE,
    OF_THE_SOURCE,
    ON_THIS_MACHINE,
    PARTITIONS,
    STATEFUL,
    CheckpointFate,
    Fault,
    Job,
    State,
    default_input,
    default_state,
)
from labkit.stores import STORES

_WITH_SERVER = ", ".join(name for name in STORES if name in SERVICES)
_WITHOUT_SERVER = ", ".join(name for name in STORES if name not in SERVICES)
_TO_SERVER = [each for each in Fault if each not in (*ON_THIS_MACHINE, *OF_THE_SOURCE)]
_RECORDS = Number(1, complaint="a batch needs at least 1 record.")
_TASKS = Number(1, MOST_PARTITIONS, f"a batch has 1 to {MOST_PARTITIONS} tasks.")
_OTHER_TASKS = checks.in_counting_jobs("change the number of tasks")
_USUAL_TASKS = Need(
    lambda scenario: scenario.later_partitions == PARTITIONS or _OTHER_TASKS.met(scenario), _OTHER_TASKS.otherwise
)


@dataclass(frozen=True)
class Scenario(Options):
    """All options of one run: the job and its input, the sink and its store, and the planned crashes.

    The first driver is killed at `crashes[0]`, the second at `crashes[1]`, and the driver after the last crash runs
    to the end. The command that labkit prints for repeating a run lists the options in the order of these fields.
    """

    VERB = "labkit run"

    strategy: Strategy = option(
        Name(Strategy),
        Strategy.APPEND,
        f"{', '.join(list(Strategy)[:-1])} or {list(Strategy)[-1]}.",
        keyword="sink",
        always=True,
        in_every_json=True,
        part=Part("sink", lambda _: list(Strategy)),
    )
    store: str = option(
        Key(STORES),
        "files",
        f"{_WITHOUT_SERVER}, or a server (labkit services): {_WITH_SERVER}.",
        check=checks.check_capable,
        always=True,
        in_every_json=True,
        part=Part("store", lambda scenario: checks.stores_for(scenario.strategy)),
    )
    job: Job = option(
        Name(Job),
        Job.RUNNING,
        "running: one row (offset, word, running count) for each record. totals: for each batch the total of "
        "each word in it; a word is a maximal run of letters, numbers and ' ([\\p{L}\\p{N}']+) in lower case. "
        "socket: one row for each line from a socket, which cannot repeat a line; each driver that will be "
        "killed gets --records-per-batch lines, and the last driver gets the rest. kafka: like running, but "
        "Spark's Kafka source reads the input from a topic of this run at read_committed. shop: for each order "
        "a row with the item and its price, which the job looks up in a file that Spark does not track, and a mail, "
        "which it appends to another such file.",
        in_every_json=True,
    )
    order: Order = option(
        Name(Order, unsaid=Order.NONE),
        Order.NONE,
        "When the sink commits: engine (before the engine records the batch, as in Spark) or decision (after that, as "
        f"in Flink); only for {' and '.join(each for each in Strategy if each.facts.defers)}.",
        usual=lambda scenario: orders(scenario.strategy)[0],
        needs=[
            Need(
                lambda scenario: scenario.order in orders(scenario.strategy),
                "{written}: {chosen.strategy} has no deferred commit, so it takes no order; leave --order out.",
            )
        ],
        always=True,
        in_every_json=True,
        part=Part("order of commits", lambda scenario: orders(scenario.strategy)),
    )
    input: Path = option(
        InputFile(),
        HELLO_WORLD_HELLO,
        'The input file. For running: JSON Lines with one {"word": ...} a line; default: hello, world, hello. '
        "For totals: any UTF-8 text; default: a poem.",
        usual=lambda scenario: default_input(scenario.job),
        in_every_json=True,
        part=Part("input"),
    )
    crashes: tuple[Crash, ...] = option(
        Crashes(),
        (),
        "The failpoint of the kill (see labkit points). Repeat the option to kill the following drivers as well.",
        check=checks.check_crashes,
        in_every_json=True,
        flag_name="crash",
        part=Part(
            "failpoint",
            lambda scenario: POINTS[scenario.strategy, scenario.order],
            name="failpoint",
            first=FailPoint.AFTER_PRE_COMMIT.value,
        ),
    )
    records_per_batch: int = option(
        _RECORDS, 1_000, "The number of records (lines) in a micro-batch.", always=True, in_every_json=True
    )
    checkpoint: CheckpointFate = option(
        NamedSwitch(CheckpointFate.KEPT, CheckpointFate.DELETED),
        CheckpointFate.KEPT,
        "Move the checkpoint aside after every crash, so that the next driver starts without it.",
        needs=[checks.after_crash("the checkpoint is deleted after a crash")],
        keyword="delete_checkpoint",
        json="checkpoint",
        in_every_json=True,
    )
    state: State = option(
        Name(State),
        State.ROCKSDB,
        "Spark's state store for the counts: hdfs or rocksdb; --job running needs rocksdb.",
        usual=lambda scenario: default_state(scenario.job),
        needs=[
            Need(
                lambda scenario: scenario.job not in STATEFUL,
                "{written}: the job {chosen.job} needs rocksdb (transformWithState); use --job totals.",
            )
        ],
        in_every_json=True,
    )
    query: str | None = option(
        Text("[a-z][a-z0-9_]{0,30}", "write a name of small letters, digits and _, for example counts_1."),
        None,
        "The query's name in batch markers and names of transactions; default: a new one for each checkpoint.",
        in_every_json=True,
    )
    later_records_per_batch: int | None = option(
        _RECORDS,
        None,
        "The number of records in a micro-batch after the first crash; default: no change.",
        needs=[checks.in_counting_jobs("change the size of their batches")],
        in_every_json=True,
    )
    partitions: int = option(
        _TASKS, PARTITIONS, "The number of tasks that write each batch of --job running or kafka.", needs=[_OTHER_TASKS]
    )
    later_partitions: int | None = option(
        _TASKS,
        None,
        "The number of tasks that write each batch after the first crash; default: no change. The state keeps its "
        "partitions.",
        needs=[_USUAL_TASKS, checks.after_crash("it takes effect after a crash")],
    )
    between: Fault = option(
        Name(Fault),
        Fault.NOTHING,
        f"What to do after each crash: nothing. With the store's server: {', '.join(_TO_SERVER)}. With the input of "
        f"--job kafka: {', '.join(OF_THE_SOURCE)}. With the prices of --job shop: {Fault.EDIT_PRICES}.",
        needs=[
            Need(
                lambda scenario: scenario.between is not Fault.EDIT_PRICES or scenario.job is Job.SHOP,
                "{written}: only a shop looks up prices; use --job shop.",
            ),
            Need(
                lambda scenario: scenario.between not in OF_THE_SOURCE or scenario.job is Job.KAFKA,
                "{written}: this changes a Kafka topic that the job reads; use --job kafka.",
            ),
            Need(
                lambda scenario: scenario.between not in _TO_SERVER or scenario.store in SERVICES,
                f"{{written}}: the store {{chosen.store}} has no server; use --store {_WITH_SERVER}.",
            ),
            checks.after_crash("it happens after a crash"),
        ],
        check=checks.check_expiry,
    )
    master: str | None = option(
        Text(),
        None,
        "spark://HOST:PORT or local-cluster[EXECUTORS,CORES,MEGABYTES] runs executors as separate processes; "
        "default: threads of the driver.",
        check=checks.check_placed,
    )
    victim: Victim = option(
        Name(Victim),
        Victim.DRIVER,
        "The process to kill: the driver, or on a cluster the executor whose task reached the failpoint.",
        check=checks.check_victim_there,
    )
    commit_group: bool = option(
        Switch(),
        default=False,
        help="With --job kafka: also commit offsets to a consumer group, so that monitors can show the lag.",
        needs=[
            Need(
                lambda scenario: scenario.job is Job.KAFKA,
                "{written}: only a job that reads Kafka has a consumer group; use --job kafka.",
            )
        ],
    )

    def batch_size(self, driver: int) -> int:
        """Return the largest number of records in a micro-batch of driver number `driver` (from 1)."""
        if driver == 1:
            return self.records_per_batch
        return self.later_records_per_batch or self.records_per_batch

    def tasks(self, driver: int) -> int:
        """Return the number of tasks that write each batch of driver number `driver` (from 1)."""
        if driver == 1:
            return self.partitions
        return self.later_partitions or self.partitions

    @property
    def most_tasks(self) -> int:
        """The largest number of tasks that write one batch."""
        return max(self.tasks(1), self.tasks(2))

    @cached_property
    def count(self) -> Count:
        """The expected output of the job for its input, computed without Spark."""
        if self.job is Job.TOTALS:
            return Totals(self.input, self.records_per_batch)
        if self.job is Job.SHOP:
            edited = self.between is Fault.EDIT_PRICES
            return Prices(self.input, len(self.crashes) if edited else 0)
        return Ones(self.input) if self.job is Job.SOCKET else RunningCounts(self.input)

    @property
    def note(self) -> str:
        """A warning to show with the verdict if the job's source (a socket) cannot repeat its input; else empty."""
        return NOT_REPLAYABLE if self.job is Job.SOCKET else ""

    @property
    def name(self) -> str:
        """A short name made of job, sink, store and crashes, for the name of the run's folder."""
        parts = [] if self.job is Job.RUNNING else [self.job.value]
        parts += [self.strategy.value, self.store]
        if self.order is not Order.NONE:
            parts.append(self.order.value)
        if self.victim is not Victim.DRIVER:
            parts.append(self.victim.value)
        return "-".join([*parts, *(str(crash).replace("@", "-") for crash in self.crashes)])

    @property
    def label(self) -> str:
        """The sink, store and commit order (sink or Spark first) in a few words, for a heading."""
        order = f", {self.order.spoken}" if self.order.spoken else ""
        return f"{self.strategy} on {self.store}{order}"


def plan(**words: object) -> Scenario:
    """Return a checked scenario, given options as a user types them: `plan(sink="wal", crashes=["sink.mid_write"])`.

    Raises `InvalidInput` for an invalid value or combination, and `TypeError` for an unknown option.
    """
    return Scenario.plan(words)
