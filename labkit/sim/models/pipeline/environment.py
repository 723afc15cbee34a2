"""What the environment may do to a pipeline: kill its driver, drop transactions and notices, and meddle with its
folder.

Each of these is enabled as often as its parameter says.
"""

from collections.abc import Sequence
from typing import ClassVar

from labkit.sim.model import Action, crash
from labkit.sim.models.pipeline.parts import (
    Driver,
    Faults,
    Op,
    Place,
    Query,
    State,
    Status,
    Transaction,
    VisibleRow,
    as_state,
    driven,
)
from labkit.sim.models.pipeline.settings import Settings, settings
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel, one_less


class Environment(RuleModel[State]):
    """Everything that goes wrong around a query: when it may, and what it changes."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings: Settings = settings(values)
        self._outside = self.settings.outside

    def _next_batch(self, query: Query) -> int | None:
        """The batch after the last that this driver planned, or after the last decided; None: no input is left."""
        batch = query.driver.batch + 1 if query.driver.batch >= 0 else query.decided + 1
        return batch if batch < len(query.ends) or self._end(query) < len(self.settings.words) else None

    @staticmethod
    def _end(query: Query) -> int:
        return query.start_of(len(query.ends))

    def _wrong(self, query: Query, zombie: Driver, transactions: Sequence[Transaction], faults: Faults) -> list[Action]:
        driver = query.driver
        alive = driver.place in (Place.RECOVERING, Place.RUNNING, Place.ENDING)
        enabled = []
        if faults.crashes and alive:
            enabled.append(Action("crash"))
        if faults.expiries:
            enabled += [
                Action("expire", number)
                for number, transaction in enumerate(transactions)
                if transaction.status in (Status.OPEN, Status.PREPARED)
            ]
        if faults.lost_notices and driver.notice >= 0:
            enabled.append(Action("lose_notice", driver.notice))
        if faults.lapses and driver.todo and driver.todo[0].op is Op.LOG_COMMIT and self._has_next(query):
            enabled.append(Action("lapse", driver.todo[0].batch))
        if driver.place is Place.DEAD:
            if faults.rollbacks and query.decided >= 0:
                enabled.append(Action("roll_back", query.decided))
            if faults.deletions and query.ends:
                enabled.append(Action("delete_checkpoint"))
        if faults.zombies and driver.todo and driver.place is Place.RUNNING:
            enabled.append(Action("replace_driver"))
        return enabled

    def _has_next(self, query: Query) -> bool:
        """Whether this batch is not the last: a checkpoint that expires is made up for by the next one."""
        return self.settings.defers and self._next_batch(query) is not None

    def _crash(self, state: State, _: int) -> State:
        query, zombie, faults, seen, *others = state
        look = VisibleRow(-1, -1, faults.crashes)
        left = Faults(faults.crashes - 1, *faults[1:])
        return as_state((crash(query), zombie, left, (*seen, look), *others))

    def _expire(self, state: State, number: int) -> State:
        handle, _, rows = state.transactions[number]
        transactions = list(state.transactions)
        transactions[number] = Transaction(handle, Status.ABORTED, rows)
        left = one_less(state.faults, "expiries")
        return state._replace(transactions=tuple(transactions), faults=left)

    def _lose_notice(self, state: State, _: int) -> State:
        left = one_less(state.faults, "lost_notices")
        return driven(state, state.query.driver._replace(notice=-1))._replace(faults=left)

    def _lapse(self, state: State, batch: int) -> State:
        """The checkpoint of a batch is never completed, and the driver goes on with the next batch."""
        query = state.query
        driver = query.driver._replace(todo=query.driver.todo[1:])
        state = state._replace(faults=one_less(state.faults, "lapses"))
        if self.settings.lapsed_is_aborted:
            [dropped] = [handles for stored, handles in query.handles if stored == batch]
            transactions = tuple(
                transaction._replace(status=Status.ABORTED) if transaction.handle in dropped else transaction
                for transaction in state.transactions
            )
            state = state._replace(transactions=transactions)
            query = query._replace(handles=tuple(votes for votes in query.handles if votes[0] != batch))
        return state._replace(query=query._replace(driver=driver))

    def _roll_back(self, state: State, _: int) -> State:
        """Somebody removes the newest `commits/N` and what was planned from there on."""
        query = state.query
        query = query._replace(decided=query.decided - 1, ends=query.ends[: query.decided])
        return state._replace(query=query, faults=one_less(state.faults, "rollbacks"))

    def _delete_checkpoint(self, state: State, _: int) -> State:
        """Somebody deletes the folder: everything durable of the query is gone, and the next one has another name."""
        left = one_less(state.faults, "deletions")
        first = 0 if self.settings.replayable else self._end(state.query)
        return state._replace(query=Query(generation=state.query.generation + 1, first=first), faults=left)

    def _replace_driver(self, state: State, _: int) -> State:
        """The driver hangs and is thought dead; another will be started, and it will wake up."""
        left = one_less(state.faults, "zombies")
        return state._replace(query=crash(state.query), zombie=state.query.driver, faults=left)

    rules: ClassVar[dict[str, Rule[State]]] = {
        "crash": Rule(_crash, "SIGKILL: the memory of the driver is gone.", Event.CRASH),
        "expire": Rule(_expire, "The store drops unfinished transaction {which} after its timeout.", Event.TIMEOUT),
        "lose_notice": Rule(_lose_notice, "The notification of batch {which} is lost.", Event.DROP),
        "lapse": Rule(_lapse, "The checkpoint of batch {which} expires, and the job lives on.", Event.TIMEOUT),
        "roll_back": Rule(_roll_back, "Somebody restores the checkpoint from before batch {which}.", Event.OPERATOR),
        "delete_checkpoint": Rule(_delete_checkpoint, "Somebody deletes the checkpoint folder.", Event.OPERATOR),
        "replace_driver": Rule(
            _replace_driver, "The driver hangs, is thought dead, and will be replaced; it will wake up.", Event.CRASH
        ),
    }
