"""The lists of tasks that a driver carries out for a batch, a commit, or a recovery, with the failpoints after each.

The facts of a strategy (`labkit.core.strategies`) list its operations; its sink in `labkit.sinks` is written
separately, on purpose, and tests compare the two. The failpoints are those at which the real sinks call `reach`.
"""

from collections.abc import Sequence
from functools import cache
from itertools import chain, dropwhile
from typing import NamedTuple, assert_never

from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import CommitOp, Op, Pending, Strategy
from labkit.sim.models.pipeline.state import Handle, Query, Status, Task, Transaction

Share = tuple[int, tuple[int, ...]]
"""A partition's share of a batch: the partition's number, and the offsets of the batch that it holds."""

Tasks = tuple[Task, ...]


@cache
def shares(words: tuple[str, ...], start: int, end: int) -> tuple[Share, ...]:
    """Return the partitions of the batch [start, end) that are not empty, each with the offsets of its words.

    Each different word has a partition of its own. Partitions are numbered from 1, in reverse alphabetical order of
    their words. With three partitions, Spark's hash gives `hello` and `world` the same partition numbers as this
    function, so tests can compare runs of the simulator with real runs on these two words.
    """
    partition_of = {word: number for number, word in enumerate(sorted(set(words), reverse=True), start=1)}
    partitions = sorted({partition_of[word] for word in words[start:end]})
    return tuple(
        (number, tuple(offset for offset in range(start, end) if partition_of[words[offset]] == number))
        for number in partitions
    )


class Writer(NamedTuple):
    """The writer of a batch, given by the numbers of its query (`generation`) and its driver (`incarnation`)."""

    generation: int
    incarnation: int

    def handle(self, batch: int, partition: int) -> Handle:
        """Return the transaction's name for one partition of a batch; another driver's transaction has another name."""
        return Handle(self.generation, batch, partition, self.incarnation)


@cache
def batch_tasks(strategy: Strategy, order: Order, batch: int, parts: tuple[Share, ...], writer: Writer) -> Tasks:
    """Return the steps of a driver for one batch, up to the file `commits/N`.

    Each step contains the failpoints that the driver reaches after it.
    """
    row, vote = _row_and_vote(strategy.facts.pending)
    tasks = [task for part in parts for task in _share_tasks(row, vote, batch, part, writer)]
    # The real sinks reach this failpoint after the first row of the last task with rows.
    first = next(number for number, task in enumerate(tasks) if task.which == parts[-1][1][0] and task.op is row)
    tasks[first] = _with(tasks[first], FailPoint.MID_WRITE)
    tasks[-1] = _with(tasks[-1], FailPoint.AFTER_PRE_COMMIT)
    if strategy.facts.looks_first:
        tasks.insert(0, Task(Op.LOOK, batch, batch))
    handles = tuple(writer.handle(batch, number) for number, _ in parts)
    if order is Order.DECISION:
        tasks.append(Task(Op.STORE_HANDLES, batch, batch, (FailPoint.AFTER_HANDLES,), handles))
    else:
        tasks += commit_tasks(strategy, batch, parts, handles)
    return (*tasks, Task(Op.LOG_COMMIT, batch, batch, (FailPoint.AFTER_COMMIT_LOG,)))


def empty_batch_tasks(order: Order, batch: int) -> Tasks:
    """Return the steps that log an empty batch as finished.

    If the sink commits only after this log entry (`Order.DECISION`), an empty list of votes is stored first.
    """
    votes = (Task(Op.STORE_HANDLES, batch, batch, (FailPoint.AFTER_HANDLES,)),) if order is Order.DECISION else ()
    return (*votes, Task(Op.LOG_COMMIT, batch, batch, (FailPoint.AFTER_COMMIT_LOG,)))


def _row_and_vote(pending: Pending) -> tuple[Op, Op | None]:
    match pending:
        case Pending.NOWHERE:
            return Op.WRITE, None
        case Pending.DRIVER:
            return Op.HAND_OVER, None
        case Pending.LOG:
            return Op.LOG, Op.SEAL
        case Pending.STORE:
            return Op.INSERT, Op.PREPARE
        case _:
            assert_never(pending)


def _share_tasks(row: Op, vote: Op | None, batch: int, part: Share, writer: Writer) -> list[Task]:
    number, offsets = part
    handles = (writer.handle(batch, number),)
    tasks = [Task(row, offset, batch, (), handles) for offset in offsets]
    if vote is not None:
        tasks[-1] = _with(tasks[-1], FailPoint.BEFORE_PRE_COMMIT)
        tasks.append(Task(vote, number, batch, (), handles))
    return tasks


def _with(task: Task, point: FailPoint) -> Task:
    return task._replace(points=(*task.points, point))


def commit_tasks(strategy: Strategy, batch: int, parts: Sequence[Share], handles: Sequence[Handle]) -> list[Task]:
    """Return the steps in which a driver commits one batch with these partitions and transactions (`handles`).

    The steps contain up to three failpoints: halfway through several steps of the same kind (such as commits), before
    the confirmation in the write-ahead log, and at the end.
    """
    tasks: list[Task] = []
    for op in strategy.facts.commit_ops:
        if op is Op.CONFIRM and tasks:
            tasks[-1] = _with(tasks[-1], FailPoint.BEFORE_CONFIRM)
        several = list(chain.from_iterable(_tasks_of(op, batch, parts, handles)))
        if len(several) > 1:
            half = len(several) // 2 - 1
            several[half] = _with(several[half], FailPoint.MID_COMMIT)
        tasks += several
    if tasks:
        tasks[-1] = _with(tasks[-1], FailPoint.AFTER_COMMIT)
    return tasks


def _tasks_of(op: CommitOp, batch: int, parts: Sequence[Share], handles: Sequence[Handle]) -> list[list[Task]]:
    match op:
        case Op.FLUSH:
            return [[Task(op, offset, batch) for offset in offsets] for _, offsets in parts]
        case Op.COMMIT:
            return [[Task(op, handle.partition, handle.batch, (), (handle,))] for handle in handles]
        case Op.MARK:
            return [[Task(op, batch, batch, (), (), tuple(chain.from_iterable(offsets for _, offsets in parts)))]]
        case Op.LOOK | Op.CONFIRM:
            return [[Task(op, batch, batch)]]
        case _:
            assert_never(op)


def due(query: Query) -> list[tuple[int, tuple[Handle, ...]]]:
    """Return each batch that is finished (`commits/N`) but not yet committed by the sink, with its transactions.

    The stored votes of the batch name these transactions.
    """
    return [(batch, handles) for batch, handles in query.handles if batch <= query.decided]


def settle_tasks(strategy: Strategy, words: tuple[str, ...], query: Query) -> Tasks:
    """Return the steps in which a sink commits each finished batch for which votes are stored.

    A vote names a transaction to commit. `words` is the whole input, one word per record.
    """
    tasks: list[Task] = []
    for batch, handles in due(query):
        if handles:
            tasks += commit_tasks(strategy, batch, logged(words, query, batch), handles)
        tasks.append(Task(Op.FORGET, batch, batch))
    return tuple(tasks)


def last_notification(query: Query) -> Tasks:
    """Return a tuple with the step that notifies the sink of the last `commits/N`; empty if no batch is logged yet.

    The sink has already committed that batch, so the notification has no effect.
    """
    return (Task(Op.TELL, query.decided, query.decided, (FailPoint.AFTER_COMMIT_LOG,)),) if query.decided >= 0 else ()


def logged(words: tuple[str, ...], query: Query, batch: int) -> tuple[Share, ...]:
    """Return the content of the write-ahead logs of a planned batch: its partitions, each with its offsets."""
    return shares(words, query.start_of(batch), query.ends[batch])


def recovery_tasks(
    strategy: Strategy, words: tuple[str, ...], query: Query, transactions: Sequence[Transaction]
) -> Tasks:
    """Return the steps of recovery: commit the finished batches, and abort all other transactions of the query.

    `words` is the whole input, one word per record, and `transactions` are all transactions in the store.
    """
    steps = _recovery_steps(strategy, words, query, transactions)
    if len(steps) > 1:
        steps[0][-1] = _with(steps[0][-1], FailPoint.MID_RESOLVE)
    return (*chain.from_iterable(steps), Task(Op.RESOLVED, 0, 0, (FailPoint.AFTER_RESOLVE,)))


def _recovery_steps(
    strategy: Strategy, words: tuple[str, ...], query: Query, transactions: Sequence[Transaction]
) -> list[list[Task]]:
    ops = strategy.facts.recovery_ops
    steps: list[list[Task]] = []
    kept: list[Handle] = []
    for batch, handles in due(query):
        kept += handles
        if handles and batch not in query.confirmed:
            parts = logged(words, query, batch)
            steps += [step for op in ops if op is not Op.ABORT for step in _tasks_of(op, batch, parts, handles)]
    if Op.ABORT in ops:
        dropped = [handle for handle in unfinished(query, transactions) if handle not in kept]
        steps += [[Task(Op.ABORT, handle.partition, handle.batch, (), (handle,))] for handle in dropped]
    return steps


def unfinished(query: Query, transactions: Sequence[Transaction]) -> list[Handle]:
    """Return the names of all unfinished transactions of this query, even those that no stored vote names."""
    return sorted(
        transaction.handle
        for transaction in transactions
        if transaction.status in (Status.OPEN, Status.PREPARED) and transaction.handle.generation == query.generation
    )


def skip(tasks: Tasks) -> tuple[Tasks, tuple[FailPoint, ...]]:
    """Skip the writes of a batch whose rows are already in the store; return two tuples, of steps and failpoints.

    `tasks` are the batch's steps that were still to come. The first tuple has the steps that are left. The second has
    failpoints that belong to skipped steps but that the driver reaches all the same.
    """
    rest = tuple(dropwhile(lambda task: task.op in _WRITES_AGAIN, tasks))
    passed = [point for task in tasks[: len(tasks) - len(rest)] for point in task.points]
    return rest, tuple(point for point in passed if point in (FailPoint.AFTER_PRE_COMMIT, FailPoint.AFTER_COMMIT))


_WRITES_AGAIN = (Op.HAND_OVER, Op.MARK, Op.FLUSH, Op.CONFIRM)
