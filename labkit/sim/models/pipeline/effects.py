"""The effect of each kind of task on the checkpoint directory and on the store, as one small function per kind.

A function raises `TaskRefusal` if the real system would refuse the task, because a transaction is gone, or because a
name or a log entry exists already. The driver then ends with an error.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from labkit.core.strategies import Op
from labkit.sim.models.pipeline.state import (
    Driver,
    Handle,
    Outside,
    State,
    Status,
    Task,
    Transaction,
    VisibleRow,
    queried,
    stored,
)


class TaskRefusal(Exception):
    """Raised if the engine or the store refuses a driver's step; the driver then ends with an error."""


def perform(outside: Outside, state: State, driver: Driver, task: Task) -> State:
    """Return the state after a driver has carried out one task. Raises `TaskRefusal` if engine or store refuse it."""
    return TASKS[task.op].effect(outside, state, driver, task)


def refusal(outside: Outside, state: State, driver: Driver, task: Task) -> str:
    """Return the reason why the engine or the store would refuse a task; an empty text if neither would."""
    try:
        perform(outside, state, driver, task)
    except TaskRefusal as error:
        return str(error)
    return ""


def _nothing(_outside: Outside, state: State, _driver: Driver, _task: Task) -> State:
    return state


def _write(_outside: Outside, state: State, driver: Driver, task: Task) -> State:
    row = VisibleRow(task.which, task.batch, driver.incarnation)
    return stored(state, (*state.seen, row), state.transactions, state.markers)


def position(transactions: Sequence[Transaction], handle: Handle) -> int:
    """Return the index of the transaction with this name (handle), or -1 if there is none."""
    for number, transaction in enumerate(transactions):
        if transaction.handle == handle:
            return number
    return -1


def _insert(outside: Outside, state: State, driver: Driver, task: Task) -> State:
    visible, transactions = state.seen, state.transactions
    number = position(transactions, task.handles[0])
    if number < 0:
        number = len(transactions)
        transactions = (*transactions, Transaction(task.handles[0], Status.OPEN, (task.which,)))
    else:
        handle, status, rows = transactions[number]
        if status is not Status.OPEN or task.which in rows:
            raise TaskRefusal(f"the store already has the transaction {handle}, which is {status}")
        transactions = _put(transactions, number, Transaction(handle, status, (*rows, task.which)))
    if outside.readable_early:
        visible = (*visible, VisibleRow(task.which, task.batch, driver.incarnation, number))
    return stored(state, visible, transactions, state.markers)


def _put(transactions: tuple[Transaction, ...], number: int, new: Transaction) -> tuple[Transaction, ...]:
    return (*transactions[:number], new, *transactions[number + 1 :])


def _ended(state: State, number: int, status: Status) -> State:
    handle, _, rows = state.transactions[number]
    transactions = _put(state.transactions, number, Transaction(handle, status, rows))
    return stored(state, state.seen, transactions, state.markers)


def _prepare(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    number = position(state.transactions, task.handles[0])
    if number < 0 or state.transactions[number].status is not Status.OPEN:
        raise TaskRefusal(f"the transaction {task.handles[0]} was dropped before it was prepared")
    return _ended(state, number, Status.PREPARED)


def _seal(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    query = state.query
    logs = tuple(sorted({*query.logs, (task.batch, task.which)}))
    return queried(state, query._replace(logs=logs))


def _commit(outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    number = position(state.transactions, task.handles[0])
    status = state.transactions[number].status if number >= 0 else Status.ABORTED
    if status is Status.COMMITTED and outside.commits_again:
        return state
    if status is Status.COMMITTED:
        raise TaskRefusal(f"the transaction {task.handles[0]} is committed already")
    if status is not Status.PREPARED:
        if outside.ignores_dropped:
            return state
        raise TaskRefusal(f"the transaction {task.handles[0]} is not prepared, so it cannot be committed")
    state = _ended(state, number, Status.COMMITTED)
    if outside.readable_early:
        return state
    rows = [VisibleRow(offset, task.batch, task.handles[0].incarnation) for offset in state.transactions[number].rows]
    return stored(state, (*state.seen, *rows), state.transactions, state.markers)


def _abort(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    number = position(state.transactions, task.handles[0])
    if number < 0 or state.transactions[number].status is Status.COMMITTED:
        return state
    return _ended(state, number, Status.ABORTED)


def _confirm(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    query = state.query
    confirmed = tuple(sorted({*(batch for batch in query.confirmed if batch >= task.batch), task.batch}))
    logs = tuple(log for log in query.logs if log[0] >= task.batch)
    return queried(state, query._replace(confirmed=confirmed, logs=logs))


def _mark(outside: Outside, state: State, driver: Driver, task: Task) -> State:
    marker = outside.marker(driver, task.batch)
    if marker in state.markers:
        raise TaskRefusal(
            f"the store already has the marker of batch {task.batch}, which says that its rows are written"
        )
    rows = [VisibleRow(offset, task.batch, driver.incarnation) for offset in task.rows]
    markers = (*state.markers, marker)
    return stored(state, (*state.seen, *rows), state.transactions, markers)


def _store_handles(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    query = state.query
    votes = dict(query.handles) | {task.batch: task.handles}
    return queried(state, query._replace(handles=tuple(sorted(votes.items()))))


def _log_commit(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    if task.batch <= state.query.decided:
        raise TaskRefusal(f"commits/{task.batch} already exists, so another driver runs this query")
    return queried(state, state.query._replace(decided=task.batch))


def _forget(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    query = state.query
    return queried(state, query._replace(handles=tuple(votes for votes in query.handles if votes[0] != task.batch)))


def _resolved(_outside: Outside, state: State, _driver: Driver, _task: Task) -> State:
    return queried(state, state.query._replace(handles=()))


class TaskRule(NamedTuple):
    """One kind of driver step: its effect on a state, and the words that pictures and sentences use for it."""

    effect: Callable[[Outside, State, Driver, Task], State]
    short: str
    """A few words for a picture, with a placeholder for the offset, partition or batch."""
    reaches: tuple[str, ...]
    """The parts of a picture that the task affects: `store`, `reader`, `folder` (the checkpoint)."""
    sentence: str
    tried: str = ""
    """The subject of the sentence if the task is refused; empty if it never is."""


TASKS: dict[Op, TaskRule] = {
    Op.WRITE: TaskRule(
        _write, "write row {0}", ("store", "reader"), "The row of offset {which} ({word}) is written and visible."
    ),
    Op.HAND_OVER: TaskRule(
        _nothing,
        "hand over row {0}",
        ("store",),
        "The row of offset {which} ({word}) goes into the driver's one open transaction.",
    ),
    Op.INSERT: TaskRule(
        _insert,
        "insert row {0}",
        ("store",),
        "The row of offset {which} ({word}) goes into its task's open transaction.",
        "The row of offset {which} ({word})",
    ),
    Op.LOG: TaskRule(_nothing, "log row {0}", (), "The row of offset {which} ({word}) is logged."),
    Op.PREPARE: TaskRule(
        _prepare,
        "pre-commit partition {0}",
        ("store",),
        "The task of partition {which} pre-commits its transaction: its vote is yes.",
        "The pre-commit of the task of partition {which}",
    ),
    Op.SEAL: TaskRule(
        _seal, "seal log {0}", ("folder",), "The task of partition {which} seals its log: its vote is yes."
    ),
    Op.LOOK: TaskRule(_nothing, "look up batch {0}", (), "The driver checks whether batch {which} is already written."),
    Op.COMMIT: TaskRule(
        _commit,
        "commit partition {0}",
        ("store", "reader"),
        "The transaction of partition {which} is committed.",
        "The commit of the transaction of partition {which}",
    ),
    Op.FLUSH: TaskRule(
        _write,
        "flush row {0}",
        ("store", "reader"),
        "The logged row of offset {which} ({word}) is flushed and visible.",
    ),
    Op.CONFIRM: TaskRule(_confirm, "confirm batch {0}", ("folder",), "The sink confirms the flush of batch {which}."),
    Op.MARK: TaskRule(
        _mark,
        "rows and marker {0}",
        ("store", "reader"),
        "Rows and marker of batch {which} are committed together.",
        "The transaction with the rows and the marker of batch {which}",
    ),
    Op.STORE_HANDLES: TaskRule(
        _store_handles, "store votes {0}", ("folder",), "The votes of batch {which} are durable."
    ),
    Op.LOG_COMMIT: TaskRule(_log_commit, "commits/{0}", ("folder",), "commits/{which} is durable.", "commits/{which}"),
    Op.TELL: TaskRule(
        _nothing, "notification {0}", (), "The notification of batch {which} arrives, and nothing is left to commit."
    ),
    Op.FORGET: TaskRule(_forget, "drop votes {0}", ("folder",), "The stored votes of batch {which} are dropped."),
    Op.ABORT: TaskRule(
        _abort,
        "abort partition {0}",
        ("store",),
        "Recovery aborts the transaction of partition {which}, which was never decided.",
    ),
    Op.RESOLVED: TaskRule(_resolved, "all resolved", ("folder",), "Recovery has resolved everything in doubt."),
}
