"""What each task does to the checkpoint folder and to the store. One small function a task; no choice is made here.

A task that the real system would refuse raises `Refused`: a transaction that is gone, a name or an entry of a log that
is there already. Its driver then ends with an error. This module must not know strategies or orders.
"""

from collections.abc import Callable, Sequence

from labkit.sim.models.pipeline.parts import (
    Driver,
    Handle,
    Op,
    Outside,
    Query,
    Seen,
    State,
    Status,
    Store,
    Task,
    Transaction,
)


class Refused(Exception):  # what happened, not whose mistake it was
    """The task cannot be carried out; its driver ends with this error."""


def perform(outside: Outside, state: State, driver: Driver, task: Task) -> State:
    """The state after one task of this driver. Raises `Refused`."""
    return _EFFECTS[task.op](outside, state, driver, task)


def refusal(outside: Outside, state: State, driver: Driver, task: Task) -> str:
    """Why a task would be refused; empty where it would not."""
    try:
        perform(outside, state, driver, task)
    except Refused as error:
        return str(error)
    return ""


def _stored(state: State, store: Store) -> State:
    query, zombie, _, faults, failures = state
    return State(query, zombie, store, faults, failures)


def _kept(state: State, query: Query) -> State:
    _, zombie, store, faults, failures = state
    return State(query, zombie, store, faults, failures)


def _nothing(_outside: Outside, state: State, _driver: Driver, _task: Task) -> State:
    return state


def _write(_outside: Outside, state: State, driver: Driver, task: Task) -> State:
    seen, transactions, markers = state.store
    row = Seen(task.which, task.batch, driver.incarnation)
    return _stored(state, Store((*seen, row), transactions, markers))


def position(transactions: Sequence[Transaction], handle: Handle) -> int:
    """Where the transaction of this name is, or -1."""
    for number, transaction in enumerate(transactions):
        if transaction.handle == handle:
            return number
    return -1


def _insert(outside: Outside, state: State, driver: Driver, task: Task) -> State:
    seen, transactions, markers = state.store
    number = position(transactions, task.handles[0])
    if number < 0:
        number = len(transactions)
        transactions = (
            *transactions,
            Transaction(task.handles[0], Status.OPEN, (task.which,)),
        )
    else:
        handle, status, rows = transactions[number]
        if status is not Status.OPEN or task.which in rows:
            raise Refused(
                f"there is a transaction {handle} already, and it is {status}"
            )
        transactions = _put(
            transactions, number, Transaction(handle, status, (*rows, task.which))
        )
    if outside.readable_early:
        seen = (*seen, Seen(task.which, task.batch, driver.incarnation, number))
    return _stored(state, Store(seen, transactions, markers))


def _put(
    transactions: tuple[Transaction, ...], number: int, new: Transaction
) -> tuple[Transaction, ...]:
    return (*transactions[:number], new, *transactions[number + 1 :])


def _ended(state: State, number: int, status: Status) -> State:
    handle, _, rows = state.store.transactions[number]
    transactions = _put(
        state.store.transactions, number, Transaction(handle, status, rows)
    )
    return _stored(state, Store(state.store.seen, transactions, state.store.markers))


def _prepare(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    number = position(state.store.transactions, task.handles[0])
    if number < 0 or state.store.transactions[number].status is not Status.OPEN:
        raise Refused(
            f"the transaction {task.handles[0]} was dropped before it was prepared"
        )
    return _ended(state, number, Status.PREPARED)


def _seal(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    query = state.query
    logs = tuple(sorted({*query.logs, (task.batch, task.which)}))
    return _kept(state, query._replace(logs=logs))


def _commit(outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    number = position(state.store.transactions, task.handles[0])
    status = state.store.transactions[number].status if number >= 0 else Status.ABORTED
    if status is Status.COMMITTED and outside.commits_again:
        return state
    if status is Status.COMMITTED:
        raise Refused(f"the transaction {task.handles[0]} is committed already")
    if status is not Status.PREPARED:
        if outside.ignores_dropped:
            return state
        raise Refused(
            f"the transaction {task.handles[0]} is not prepared, so it cannot be committed"
        )
    state = _ended(state, number, Status.COMMITTED)
    if outside.readable_early:
        return state
    seen, transactions, markers = state.store
    rows = [
        Seen(offset, task.batch, task.handles[0].incarnation)
        for offset in transactions[number].rows
    ]
    return _stored(state, Store((*seen, *rows), transactions, markers))


def _abort(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    number = position(state.store.transactions, task.handles[0])
    if number < 0 or state.store.transactions[number].status is Status.COMMITTED:
        return state
    return _ended(state, number, Status.ABORTED)


def _confirm(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    query = state.query
    confirmed = tuple(
        sorted(
            {*(batch for batch in query.confirmed if batch >= task.batch), task.batch}
        )
    )
    logs = tuple(log for log in query.logs if log[0] >= task.batch)
    return _kept(state, query._replace(confirmed=confirmed, logs=logs))


def _mark(outside: Outside, state: State, driver: Driver, task: Task) -> State:
    seen, transactions, markers = state.store
    marker = outside.marker(driver, task.batch)
    if marker in markers:
        raise Refused(f"the marker of batch {task.batch} is there already")
    rows = [Seen(offset, task.batch, driver.incarnation) for offset in task.rows]
    return _stored(state, Store((*seen, *rows), transactions, (*markers, marker)))


def _store_handles(
    _outside: Outside, state: State, _driver: Driver, task: Task
) -> State:
    query = state.query
    votes = dict(query.handles) | {task.batch: task.handles}
    return _kept(state, query._replace(handles=tuple(sorted(votes.items()))))


def _log_commit(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    if task.batch <= state.query.decided:
        raise Refused(
            f"commits/{task.batch} is there already: another driver runs this query"
        )
    return _kept(state, state.query._replace(decided=task.batch))


def _forget(_outside: Outside, state: State, _driver: Driver, task: Task) -> State:
    query = state.query
    return _kept(
        state,
        query._replace(
            handles=tuple(votes for votes in query.handles if votes[0] != task.batch)
        ),
    )


def _resolved(_outside: Outside, state: State, _driver: Driver, _task: Task) -> State:
    return _kept(state, state.query._replace(handles=()))


_EFFECTS: dict[Op, Callable[[Outside, State, Driver, Task], State]] = {
    Op.WRITE: _write,
    Op.HAND_OVER: _nothing,
    Op.INSERT: _insert,
    Op.LOG: _nothing,
    Op.PREPARE: _prepare,
    Op.SEAL: _seal,
    Op.LOOK: _nothing,
    Op.COMMIT: _commit,
    Op.FLUSH: _write,
    Op.CONFIRM: _confirm,
    Op.MARK: _mark,
    Op.STORE_HANDLES: _store_handles,
    Op.LOG_COMMIT: _log_commit,
    Op.TELL: _nothing,
    Op.FORGET: _forget,
    Op.ABORT: _abort,
    Op.RESOLVED: _resolved,
}
