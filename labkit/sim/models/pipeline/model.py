"""The simulator of a pipeline: a source with offsets, a stateful count, micro-batches, a sink strategy, and a store.

A driver recovers, plans a batch, writes, pre-commits, commits and goes on; it can die between any two steps. The
environment can also drop a transaction, lose a notification, let a checkpoint expire, and more, each as often as its
parameter allows. The judge of real runs also judges these runs. A repeated batch gives the same counts, because the
driver restores the counts from the state of the batch before.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from labkit.core.failpoints import FailPoint
from labkit.core.strategies import Op
from labkit.sim.model import Action, Property, crash
from labkit.sim.models.pipeline.claims import LEADS, NOTIFIED, ZOMBIE, Judge, claims, done_before, refused, text
from labkit.sim.models.pipeline.effects import TASKS, TaskRefusal, perform, refusal
from labkit.sim.models.pipeline.programs import (
    Writer,
    batch_tasks,
    due,
    empty_batch_tasks,
    last_notification,
    recovery_tasks,
    settle_tasks,
    shares,
    skip,
)
from labkit.sim.models.pipeline.state import (
    NOBODY,
    PARAMETERS,
    Driver,
    Faults,
    Place,
    Query,
    Settings,
    State,
    Status,
    Task,
    Transaction,
    VisibleRow,
    as_driver,
    as_state,
    driven,
    queried,
    settings,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel, one_less


class Environment(RuleModel[State]):
    """The part of the simulator that contains the faults: when each of them is possible, and its effect."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings: Settings = settings(values)
        self.judge = Judge(self.settings)
        self._outside = self.settings.outside

    def _next_batch(self, query: Query) -> int | None:
        batch = query.driver.batch + 1 if query.driver.batch >= 0 else query.decided + 1
        return batch if batch < len(query.ends) or self._end(query) < len(self.settings.words) else None

    @staticmethod
    def _end(query: Query) -> int:
        return query.start_of(len(query.ends))

    def _wrong(self, query: Query, transactions: Sequence[Transaction], faults: Faults) -> list[Action]:
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
        finishes = bool(driver.todo) and driver.todo[0].op is Op.LOG_COMMIT
        if faults.lapses and finishes and self.settings.defers and self._next_batch(query) is not None:
            enabled.append(Action("lapse", driver.todo[0].batch))
        if driver.place is Place.DEAD:
            if faults.rollbacks and query.decided >= 0:
                enabled.append(Action("roll_back", query.decided))
            if faults.deletions and query.ends:
                enabled.append(Action("delete_checkpoint"))
        if faults.zombies and driver.todo and driver.place is Place.RUNNING:
            enabled.append(Action("replace_driver"))
        return enabled

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
        query = state.query
        # A person deletes the newest `commits/N` and the plans of all later batches.
        query = query._replace(decided=query.decided - 1, ends=query.ends[: query.decided])
        return state._replace(query=query, faults=one_less(state.faults, "rollbacks"))

    def _delete_checkpoint(self, state: State, _: int) -> State:
        left = one_less(state.faults, "deletions")
        first = 0 if self.settings.replayable else self._end(state.query)
        return state._replace(query=Query(generation=state.query.generation + 1, first=first), faults=left)

    def _replace_driver(self, state: State, _: int) -> State:
        left = one_less(state.faults, "zombies")
        return state._replace(query=crash(state.query), zombie=state.query.driver, faults=left)

    rules: ClassVar[dict[str, Rule[State]]] = {
        "crash": Rule(_crash, "SIGKILL: the memory of the driver is gone.", Event.CRASH),
        "expire": Rule(_expire, "The store drops unfinished transaction {which} after its timeout.", Event.TIMEOUT),
        "lose_notice": Rule(_lose_notice, "The notification of batch {which} is lost.", Event.DROP),
        "lapse": Rule(_lapse, "The checkpoint of batch {which} expires, and the job goes on.", Event.TIMEOUT),
        "roll_back": Rule(_roll_back, "Somebody restores the checkpoint from before batch {which}.", Event.OPERATOR),
        "delete_checkpoint": Rule(_delete_checkpoint, "Somebody deletes the checkpoint folder.", Event.OPERATOR),
        "replace_driver": Rule(
            _replace_driver,
            "The driver hangs and is thought dead, so a new one will replace it; it wakes up later.",
            Event.CRASH,
        ),
    }


MAX_FAILURES = 2
"""The number of failed drivers after which nobody starts another; two show that each would fail."""


def _task_rules(effect: Callable[[Any, State, int], State], prefix: str = "") -> dict[str, Rule[State]]:
    lead = LEADS.get(prefix, "")
    return {f"{prefix}{op}": Rule(effect, lead + task.sentence) for op, task in TASKS.items()}


class Pipeline(Environment):
    """The simulator of a Spark-like streaming query that writes through a sink into an external store."""

    name, version, parameters = "pipeline", 1, PARAMETERS

    def initial(self) -> State:
        """Return the initial state: nothing is planned, and no driver runs."""
        return State(Query(), NOBODY, self.settings.faults)

    def actions(self, state: State) -> Sequence[Action]:
        query, zombie, faults, _, transactions, _, failures = state
        driver = query.driver
        enabled = [Action(NOTIFIED + driver.settling[0].op, driver.settling[0].which)] if driver.settling else []
        if driver.notice >= 0 and not driver.settling:
            enabled.append(Action("notify", driver.notice))
        if driver.place is Place.DEAD:
            if failures < MAX_FAILURES:
                enabled.append(Action("start", query.incarnation + 1))
        elif driver.place is not Place.ENDED:
            enabled += self._next_step(query)
        if zombie.todo:
            enabled.append(Action(ZOMBIE + zombie.todo[0].op, zombie.todo[0].which))
        if any(faults):
            enabled += self._wrong(query, transactions, faults)
        return enabled

    def _next_step(self, query: Query) -> list[Action]:
        driver = query.driver
        if not driver.todo:
            batch = self._next_batch(query) if driver.place is Place.RUNNING else None
            if batch is not None:
                is_gone = batch < len(query.ends) and not self.settings.replayable
                return [Action("plan_nothing" if is_gone else "plan", batch)]
            return [] if driver.settling else [Action("end" if driver.place is Place.ENDING else "finish")]
        task = driver.todo[0]
        if task.op is Op.STORE_HANDLES and due(query):
            return [] if driver.settling else [Action("catch_up", query.decided)]
        return [Action(task.op, task.which)]

    def reached(self, state: State, action: Action) -> tuple[FailPoint, ...]:
        """Return the failpoints (places in the code where a crash can happen) that a driver reaches with an action."""
        if action.name == "start":
            return (FailPoint.BEFORE_RESOLVE,)
        if action.name == "plan":
            return (FailPoint.AFTER_OFFSET_LOG,)
        driver, tasks = self._work(state, action)
        if not tasks or driver is state.zombie:
            return ()
        is_done = self._is_done(state, driver, tasks[0])
        return skip(tasks[1:])[1] if is_done else tasks[0].points

    def _work(self, state: State, action: Action) -> tuple[Driver, tuple[Task, ...]]:
        driver, zombie = state.query.driver, state.zombie
        effect = self.rules[action.name].effect
        if effect is Pipeline._zombie_step:
            return zombie, zombie.todo
        if effect is Pipeline._notified_step:
            return driver, driver.settling
        return driver, driver.todo if effect is Pipeline._driver_step else ()

    # Steps of drivers.

    def _driver_step(self, state: State, _: int) -> State:
        driver = state.query.driver
        task = driver.todo[0]
        try:
            after = perform(self._outside, state, driver, task)
        except TaskRefusal:
            return self._fail(state)
        place, generation, incarnation, batch, todo, settling, notice = driver
        todo = skip(todo[1:])[0] if self._is_done(state, driver, task) else todo[1:]
        if task.op is Op.RESOLVED:
            place = Place.RUNNING
        elif task.op is Op.LOG_COMMIT and self.settings.defers:
            notice = task.batch
        return driven(after, as_driver((place, generation, incarnation, batch, todo, settling, notice)))

    def _notified_step(self, state: State, _: int) -> State:
        driver = state.query.driver
        task = driver.settling[0]
        try:
            after = perform(self._outside, state, driver, task)
        except TaskRefusal:
            return self._fail(state)
        rest = skip(driver.settling[1:])[0] if self._is_done(state, driver, task) else driver.settling[1:]
        return driven(after, as_driver((*driver[:5], rest, driver.notice)))

    def _zombie_step(self, state: State, _: int) -> State:
        zombie = state.zombie
        task = zombie.todo[0]
        if self._is_replaced(state):
            return state._replace(zombie=NOBODY)
        try:
            after = perform(self._outside, state, zombie, task)
        except TaskRefusal:
            return state._replace(zombie=NOBODY)
        rest = skip(zombie.todo[1:])[0] if self._is_done(state, zombie, task) else zombie.todo[1:]
        return after._replace(zombie=zombie._replace(todo=rest) if rest else NOBODY)

    def _is_replaced(self, state: State) -> bool:
        return self.settings.fencing or state.zombie.generation != state.query.generation

    def _is_done(self, state: State, driver: Driver, task: Task) -> bool:
        if task.op is not Op.LOOK:
            return False
        marker = self._outside.marker(driver, task.batch)
        return marker in state.markers or task.batch in state.query.confirmed

    def _fail(self, state: State) -> State:
        return state._replace(query=crash(state.query), failures=state.failures + 1)

    def _start(self, state: State, incarnation: int) -> State:
        query = state.query
        if self.settings.deletes_logs:
            query = query._replace(handles=(), logs=())
        todo = recovery_tasks(self.settings.strategy, self.settings.words, query, state.transactions)
        driver = Driver(Place.RECOVERING, query.generation, incarnation, -1, todo)
        return queried(state, Query(*query[:5], incarnation, query.generation, query.first, driver))

    def _plan(self, state: State, batch: int) -> State:
        query = state.query
        driver = query.driver
        ends = query.ends
        if batch == len(ends):
            ends = (*ends, self.settings.end_of(self._end(query), query.generation))
        parts = shares(self.settings.words, query.start_of(batch), ends[batch])
        writer = Writer(driver.generation, driver.incarnation)
        todo = batch_tasks(self.settings.strategy, self.settings.order, batch, parts, writer)
        planned = Driver(driver.place, driver.generation, driver.incarnation, batch, todo, *driver[5:])
        return queried(state, Query(ends, *query[1:8], planned))

    def _plan_nothing(self, state: State, batch: int) -> State:
        driver = state.query.driver
        todo = empty_batch_tasks(self.settings.order, batch)
        return driven(state, driver._replace(batch=batch, todo=todo))

    def _finish(self, state: State, _: int) -> State:
        todo = self._settling(state) if self.settings.defers else last_notification(state.query)
        left = todo if self.settings.sweeps else ()
        return driven(state, state.query.driver._replace(place=Place.ENDING, todo=left, notice=-1))

    def _end_query(self, state: State, _: int) -> State:
        driver = state.query.driver
        return driven(state, Driver(Place.ENDED, driver.generation, driver.incarnation))

    def _settling(self, state: State) -> tuple[Task, ...]:
        return settle_tasks(self.settings.strategy, self.settings.words, state.query)

    def _catch_up(self, state: State, _: int) -> State:
        # The driver may have missed the notification that a batch is finished.
        return driven(state, state.query.driver._replace(settling=self._settling(state)))

    def _notify(self, state: State, _: int) -> State:
        return driven(state, state.query.driver._replace(settling=self._settling(state), notice=-1))

    def properties(self) -> Sequence[Property[State]]:
        return claims(self.settings, self.judge)

    def text(self, state: State) -> str:
        return text(self.settings, state)

    def words(self, action: Action) -> Mapping[str, object]:
        """Return the values of a sentence's placeholders: `word` is the input word at the action's offset."""
        words, which = self.settings.words, action.which
        return {"word": words[which] if 0 <= which < len(words) else ""}

    def sentence_in(self, state: State, action: Action) -> str:
        """Return the sentence for an action in this state; if its task is refused, the sentence says why."""
        driver, tasks = self._work(state, action)
        if not tasks:
            return self.sentence(action)
        why = refusal(self._outside, state, driver, tasks[0])
        if driver is state.zombie and self._is_replaced(state):
            why = "it was replaced"
        if why:
            return refused(action, tasks[0], str(self.words(action)["word"]), why)
        return done_before(state, action, tasks[0]) or self.sentence(action)

    rules: ClassVar[dict[str, Rule[State]]] = {
        "start": Rule(_start, "Driver {which} starts and reads which batches are decided.", Event.RESTART),
        "plan": Rule(_plan, "Batch {which} is planned: offsets/{which} is durable."),
        "plan_nothing": Rule(
            _plan_nothing,
            "Batch {which} was planned before, but the source cannot send its records again, so the batch is empty.",
        ),
        "finish": Rule(_finish, "No input is left: the query comes to its clean end."),
        "end": Rule(_end_query, "The query has ended."),
        "catch_up": Rule(
            _catch_up, "Before the driver stores new votes, it commits everything decided up to batch {which}."
        ),
        "notify": Rule(_notify, "The notification of batch {which} arrives."),
        **_task_rules(_driver_step),
        **_task_rules(_notified_step, NOTIFIED),
        **_task_rules(_zombie_step, ZOMBIE),
    }
