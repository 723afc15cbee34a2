"""The parameters and states of the simulator `pipeline`: checkpoint directory, driver, store, and remaining faults."""

from dataclasses import dataclass
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import Op, Pending, Strategy, orders
from labkit.sim.model import Durable, Volatile, Word, from_fields
from labkit.sim.parameters import Choice, Parameter, Switch, Values, Whole, Words


class Handle(NamedTuple):
    """The name of a transaction: the numbers of its query (`generation`), batch, partition, driver and task attempt."""

    generation: int
    batch: int
    partition: int
    incarnation: int
    attempt: int = 0

    def __str__(self) -> str:
        again = f"-a{self.attempt}" if self.attempt else ""
        return f"q{self.generation}-b{self.batch}-p{self.partition}-i{self.incarnation}{again}"


class Task(NamedTuple):
    """One step that a driver must still take; `which` is an offset, or the number of a partition or batch.

    `points` are the failpoints that the driver reaches after the step; `handles` and `rows` are the transactions and
    the offsets that the step affects.
    """

    op: Op
    which: int
    batch: int
    points: tuple[FailPoint, ...] = ()
    handles: tuple[Handle, ...] = ()
    rows: tuple[int, ...] = ()


class Place(Word):
    """The current activity of a driver process."""

    DEAD = "dead"
    RECOVERING = "recovering"
    RUNNING = "running"
    ENDING = "ending"
    ENDED = "ended"


class Driver(NamedTuple):
    """The memory of one driver process, which a crash loses completely.

    `todo` has the remaining steps of the driver's main thread, and `settling` the remaining steps of the thread that
    handles notifications. `notice` is the batch of a notification that waits for this thread, or -1. `batch` is the
    last batch that this driver has planned, or -1.
    """

    place: Place = Place.DEAD
    generation: int = 0
    incarnation: int = 0
    batch: int = -1
    todo: tuple[Task, ...] = ()
    settling: tuple[Task, ...] = ()
    notice: int = -1


NOBODY = Driver()


class Query(NamedTuple):
    """The state of one streaming query: the contents of its checkpoint directory, and the process that runs it."""

    ends: Durable[tuple[int, ...]] = ()
    """The offset at which each planned batch ends, as in `offsets/N`."""
    decided: Durable[int] = -1
    """The last batch with a `commits/N`; -1 if there is none."""
    handles: Durable[tuple[tuple[int, tuple[Handle, ...]], ...]] = ()
    """The stored votes of each batch, as pairs of the batch and the transactions to commit."""
    logs: Durable[tuple[tuple[int, int], ...]] = ()
    """The sealed write-ahead logs, each as (batch, partition)."""
    confirmed: Durable[tuple[int, ...]] = ()
    """The batches whose write-ahead logs are recorded as written to the store."""
    incarnation: Durable[int] = 0
    """The number of drivers that have run the query with this checkpoint."""
    generation: Durable[int] = 0
    """The number of the query. Deleting the checkpoint folder begins a new query with another number."""
    first: Durable[int] = 0
    """The offset at which the query began to read: 0 for a log, the first unread offset for a socket."""
    driver: Volatile[Driver] = NOBODY

    def start_of(self, batch: int) -> int:
        """Return the offset at which a batch starts."""
        return self.ends[batch - 1] if batch else self.first


class Status(Word):
    """Whether a transaction is open, prepared, committed or aborted."""

    OPEN = "open"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Transaction(NamedTuple):
    """The state of one transaction in the store, which survives its writer."""

    handle: Handle
    status: Status
    rows: tuple[int, ...]


class VisibleRow(NamedTuple):
    """A row that became visible, or (with offset -1) a crash, after which a reader reads the whole store.

    `transaction` is the index of the row's transaction if readers saw the row before the transaction ended, otherwise
    -1.
    """

    offset: int
    batch: int
    incarnation: int
    transaction: int = -1


class Faults(NamedTuple):
    """How many more crashes and other faults of each kind may happen in a run."""

    crashes: int = 0
    expiries: int = 0
    lost_notices: int = 0
    lapses: int = 0
    rollbacks: int = 0
    deletions: int = 0
    zombies: int = 0


class State(NamedTuple):
    """The state of the query and the store, and the faults that may still happen.

    `zombie` is a driver that was wrongly declared dead. A crash of a driver does not change the store. The content of
    the store is split into three fields (`seen`, `transactions`, `markers`) to save memory: a search stores each
    different value of a field once, and a single field would have a value for every combination of the three.
    """

    query: Query
    zombie: Driver
    faults: Faults
    seen: tuple[VisibleRow, ...] = ()
    transactions: tuple[Transaction, ...] = ()
    markers: tuple[tuple[int, int], ...] = ()
    """The markers in the store, each as (query, batch)."""
    failures: int = 0
    """The number of drivers that have ended with an error."""


class Outside(NamedTuple):
    """How the external store behaves: whether readers see rows before their commit, and which commits it accepts."""

    readable_early: bool
    """Whether readers see the rows of open transactions."""
    ignores_dropped: bool
    """Whether a commit of a dropped transaction is ignored; otherwise it is an error."""
    marks_query: bool
    """Whether a marker names the query and the batch; otherwise it names only the batch."""
    commits_again: bool
    """Whether a second commit of a transaction is ignored; otherwise it is an error."""

    def marker(self, driver: Driver, batch: int) -> tuple[int, int]:
        """Return the marker (query, batch) that a driver writes together with a batch, to recognise the batch later."""
        return (driver.generation if self.marks_query else 0, batch)


# Four times as fast as `_replace`, because a search builds a state for every step.

as_state = from_fields(State)
as_query = from_fields(Query)
as_driver = from_fields(Driver)


def driven(state: State, driver: Driver) -> State:
    """Return the state with the query's driver replaced by `driver`."""
    query, *others = state
    return as_state((as_query((*query[:8], driver)), *others))


def queried(state: State, query: Query) -> State:
    """Return the state with its query replaced by `query`."""
    return as_state((query, *state[1:]))


def stored(
    state: State,
    seen: tuple[VisibleRow, ...],
    transactions: tuple[Transaction, ...],
    markers: tuple[tuple[int, int], ...],
) -> State:
    """Return the state with these visible rows, transactions and markers in its store."""
    query, zombie, faults, _, _, _, failures = state
    return as_state((query, zombie, faults, seen, transactions, markers, failures))


class StoreKind(NamedTuple):
    """The abilities of a store: whether it can upsert by key (`keyed`), and whether its transactions are `simulated`.

    A store that simulates transactions keeps uncommitted rows in a table that readers could read.
    """

    keyed: bool
    simulated: bool


STORES = {
    "files": StoreKind(keyed=False, simulated=False),
    "sqlite": StoreKind(keyed=True, simulated=True),
    "postgres": StoreKind(keyed=True, simulated=False),
    "kafka": StoreKind(keyed=False, simulated=False),
}
"""The stores that the simulator models, by name."""

PARAMETERS: dict[str, Parameter] = {
    "strategy": Choice(
        "The sink strategy, which decides how rows become visible.", "two_phase", tuple(each.value for each in Strategy)
    ),
    "order": Choice(
        "Which comes first: the sink's commit (engine), or the engine's record that the batch is done (decision); "
        "default: as is usual for the strategy.",
        "default",
        ("default", "engine", "decision"),
    ),
    "store": Choice(
        "The store: it keeps rows only (files, kafka), or also one row for each key (sqlite, postgres).",
        "files",
        tuple(STORES),
    ),
    "reader": Choice(
        "What readers see: committed rows only, or also the table in which the store sqlite keeps uncommitted rows.",
        "committed",
        ("committed", "table"),
    ),
    "source": Choice(
        "What a restarted driver can read again: everything (log), or nothing that was read before (socket).",
        "log",
        ("log", "socket"),
    ),
    "words": Words("The input, one word a record.", "hello-world-hello"),
    "records_per_batch": Whole("Records in a micro-batch.", 8, 1, 8),
    "crashes": Whole("How many crashes there may be.", 1, 0, 4),
    "expiries": Whole("How many unfinished transactions the store may drop after its timeout.", 0, 0, 3),
    "dropped": Choice(
        "What a commit does if the store has dropped the transaction: raise an error, or log it and go on (ignore).",
        "raise",
        ("raise", "ignore"),
    ),
    "committed_again": Choice(
        "What a second commit of the same transaction does: nothing (ignore), or raise.", "ignore", ("ignore", "raise")
    ),
    "unconfirmed_log": Choice(
        "What recovery does with the write-ahead log of a finished batch that has no confirmation: write it to the "
        "store again (flush), or delete it.",
        "flush",
        ("flush", "delete"),
    ),
    "lost_notices": Whole("How many notifications of a decision may be lost.", 0, 0, 3),
    "lapses": Whole("How many checkpoints may expire while the job continues.", 0, 0, 3),
    "lapsed": Choice(
        "What happens to the transactions of an expired checkpoint: the next checkpoint commits them (kept), or they "
        "are aborted.",
        "kept",
        ("kept", "aborted"),
    ),
    "rollbacks": Whole("How often an older checkpoint may be restored.", 0, 0, 2),
    "deletions": Whole("How often the checkpoint folder may be deleted.", 0, 0, 2),
    "markers": Choice("What a marker names: query and batch, or the batch alone.", "query", ("query", "batch")),
    "zombies": Whole("How many drivers may be replaced although they are alive, and write again later.", 0, 0, 1),
    "fencing": Switch("Whether the store refuses writes of a driver that was replaced.", default=False),
    "sweeps": Switch(
        "Whether a query that ends without a crash delivers the last notification to the sink.", default=True
    ),
}


@dataclass(frozen=True)
class Settings:
    """The parameters of the simulator `pipeline` as Python types, such as a `Strategy` instead of its name."""

    strategy: Strategy
    order: Order
    replayable: bool
    words: tuple[str, ...]
    records_per_batch: int
    faults: Faults
    outside: Outside
    lapsed_is_aborted: bool
    deletes_logs: bool
    fencing: bool
    sweeps: bool

    @property
    def keyed(self) -> bool:
        """Return whether an output row replaces the earlier row of its key."""
        return self.strategy.facts.replaces

    @property
    def defers(self) -> bool:
        """Return whether the sink commits only after the engine has logged the batch as done, as in Flink."""
        return self.order is Order.DECISION

    def end_of(self, start: int, generation: int) -> int:
        """Return the end offset of the batch that begins at `start`.

        After a deletion of the checkpoint (`generation` is not 0), one batch takes the whole remaining input.
        """
        return len(self.words) if generation else min(start + self.records_per_batch, len(self.words))


def settings(values: Values) -> Settings:
    """Convert parameter values to `Settings`. Raises `InvalidInput` if two of the values exclude each other."""
    strategy, kind = Strategy(str(values["strategy"])), STORES[str(values["store"])]
    order = orders(strategy)[0] if values["order"] == "default" else Order(str(values["order"]))
    if order not in orders(strategy):
        raise InvalidInput(f"order={order}: the strategy {strategy} cannot commit in this order; set order=default.")
    if strategy.facts.replaces and not kind.keyed:
        raise InvalidInput(f"store={values['store']}: {strategy} needs a store with upserts by key; set store=sqlite.")
    early = values["reader"] == "table"
    if early and not kind.simulated:
        raise InvalidInput(
            f"reader=table: the store {values['store']} keeps no uncommitted rows in a table; set store=sqlite."
        )
    if values["source"] == "socket" and int(values["rollbacks"]):
        raise InvalidInput(
            f"rollbacks={values['rollbacks']}: a socket cannot repeat records after a rollback; "
            "set source=log, or rollbacks=0."
        )
    if values["unconfirmed_log"] == "delete" and strategy.facts.pending is not Pending.LOG:
        raise InvalidInput(
            f"unconfirmed_log=delete: the strategy {strategy} has no write-ahead log to delete; set strategy=wal."
        )
    return Settings(
        strategy=strategy,
        order=order,
        replayable=values["source"] == "log",
        words=tuple(str(values["words"]).split("-")),
        records_per_batch=int(values["records_per_batch"]),
        faults=Faults(*(int(values[name]) for name in Faults._fields)),
        outside=Outside(
            readable_early=early,
            ignores_dropped=values["dropped"] == "ignore",
            marks_query=values["markers"] == "query",
            commits_again=values["committed_again"] == "ignore",
        ),
        lapsed_is_aborted=values["lapsed"] == "aborted",
        deletes_logs=values["unconfirmed_log"] == "delete",
        fencing=bool(values["fencing"]),
        sweeps=bool(values["sweeps"]),
    )
