"""What may be chosen of the pipeline, and which choices exclude each other. Nothing here runs."""

from dataclasses import dataclass
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order
from labkit.core.strategies import Pending, Strategy, orders
from labkit.sim.models.pipeline.parts import Faults, Outside
from labkit.sim.parameters import Choice, Parameter, Switch, Values, Whole, Words

VERSION = 1


class StoreKind(NamedTuple):
    """What a store can do, as far as it matters here: upsert by key, and whether its prepared state is its own.

    A store that only simulates the prepared state keeps uncommitted rows in the table that everybody could read.
    """

    keyed: bool
    simulated: bool


STORES = {
    "files": StoreKind(keyed=False, simulated=False),
    "sqlite": StoreKind(keyed=True, simulated=True),
    "postgres": StoreKind(keyed=True, simulated=False),
    "kafka": StoreKind(keyed=False, simulated=False),
}
"""The stores that are modelled; a store without a line here is not."""

PARAMETERS: dict[str, Parameter] = {
    "strategy": Choice("How rows become visible.", "two_phase", tuple(each.value for each in Strategy)),
    "order": Choice(
        "Who comes first: the sink's commit (engine) or the engine's log (decision); default: the strategy's own.",
        "default",
        ("default", "engine", "decision"),
    ),
    "store": Choice("Rows, or also totals by key.", "files", tuple(STORES)),
    "reader": Choice(
        "What outsiders read: what is committed, or the raw table of a store that simulates the prepared state.",
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
        "What a commit of a dropped transaction does: raise, or log the error and go on.", "raise", ("raise", "ignore")
    ),
    "committed_again": Choice(
        "What a second commit of the same transaction does: nothing (ignore), or raise.", "ignore", ("ignore", "raise")
    ),
    "unconfirmed_log": Choice(
        "What recovery does with a write-ahead log that is decided and not confirmed: flush it again, or delete it.",
        "flush",
        ("flush", "delete"),
    ),
    "lost_notices": Whole("How many notifications of a decision may be lost.", 0, 0, 3),
    "lapses": Whole("How many checkpoints may expire while the job lives on.", 0, 0, 3),
    "lapsed": Choice(
        "What becomes of the transactions of an expired checkpoint: they ride along, or are aborted.",
        "kept",
        ("kept", "aborted"),
    ),
    "rollbacks": Whole("How often an older checkpoint may be restored.", 0, 0, 2),
    "deletions": Whole("How often the checkpoint folder may be deleted.", 0, 0, 2),
    "markers": Choice("What a marker names: query and batch, or the batch alone.", "query", ("query", "batch")),
    "zombies": Whole("How many drivers may be thought dead and wake up.", 0, 0, 1),
    "fencing": Switch("Whether a driver that was replaced is refused.", default=False),
    "sweeps": Switch("Whether a clean end delivers the last notification.", default=True),
}


@dataclass(frozen=True)
class Settings:
    """The parameters, understood."""

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
        """Whether a row replaces the earlier row of its key."""
        return self.strategy.facts.replaces

    @property
    def defers(self) -> bool:
        """Whether the decision comes before the commit."""
        return self.order is Order.DECISION

    def end_of(self, start: int, generation: int) -> int:
        """The offset at which a new batch ends. In a fresh folder the first batch takes everything that has
        piled up.
        """
        return len(self.words) if generation else min(start + self.records_per_batch, len(self.words))


def settings(values: Values) -> Settings:
    """The parameters, understood. Raises `InvalidInput` where two of them exclude each other."""
    strategy, kind = Strategy(str(values["strategy"])), STORES[str(values["store"])]
    order = orders(strategy)[0] if values["order"] == "default" else Order(str(values["order"]))
    if order not in orders(strategy):
        raise InvalidInput(f"order={order}: {strategy} has nothing to defer and takes no order; leave it out.")
    if strategy.facts.replaces and not kind.keyed:
        raise InvalidInput(f"store={values['store']}: {strategy} needs a store with upserts by key; set store=sqlite.")
    early = values["reader"] == "table"
    if early and not kind.simulated:
        raise InvalidInput(
            f"reader=table: the store {values['store']} has no table with uncommitted rows; set store=sqlite."
        )
    if values["source"] == "socket" and int(values["rollbacks"]):
        raise InvalidInput(f"rollbacks={values['rollbacks']}: a socket cannot go back; set source=log, or rollbacks=0.")
    if values["unconfirmed_log"] == "delete" and strategy.facts.pending is not Pending.LOG:
        raise InvalidInput(f"unconfirmed_log=delete: {strategy} keeps no log; set strategy=wal.")
    names = Faults._fields
    return Settings(
        strategy=strategy,
        order=order,
        replayable=values["source"] == "log",
        words=tuple(str(values["words"]).split("-")),
        records_per_batch=int(values["records_per_batch"]),
        faults=Faults(*(int(values[name]) for name in names)),
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
