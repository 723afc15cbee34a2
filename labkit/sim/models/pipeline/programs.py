"""The programs of a driver as lists of tasks: a batch, a commit, a recovery; each task with the failpoints after it.

Each strategy has a `Program` here and a separate sink in `labkit.sinks`, on purpose; the two must agree. The
failpoints are where the real sinks call `reach`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, dropwhile
from typing import NamedTuple, assert_never

from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import Strategy
from labkit.sim.models.pipeline.state import Handle, Op, Query, Status, Task, Transaction

Share = tuple[int, tuple[int, ...]]
"""A partition, and the offsets of one batch that it holds."""

Tasks = tuple[Task, ...]


@cache
def shares(words: tuple[str, ...], start: int, end: int) -> tuple[Share, ...]:
    """Return the partitions of a batch that hold rows, in order; partition 0 stays empty.

    Words go to partitions in the reverse order of the alphabet. Spark's hash with three partitions does the
    same for `hello` and `world`, the only words for which runs of the simulator are compared with real ones.
    """
    partition_of = {word: number for number, word in enumerate(sorted(set(words), reverse=True), start=1)}
    partitions = sorted({partition_of[word] for word in words[start:end]})
    return tuple(
        (number, tuple(offset for offset in range(start, end) if partition_of[words[offset]] == number))
        for number in partitions
    )


class Writer(NamedTuple):
    """The writer of a batch: the number of a query, and the number of one of its drivers."""

    generation: int
    incarnation: int

    def handle(self, batch: int, partition: int) -> Handle:
        """Return the name of one task's transaction.

        It contains the driver's number, because otherwise a second attempt would find the transaction of the first.
        """
        return Handle(self.generation, batch, partition, self.incarnation)


@cache
def batch_tasks(strategy: Strategy, order: Order, batch: int, parts: tuple[Share, ...], writer: Writer) -> Tasks:
    """Return all tasks of a batch, from its first row to `commits/N`."""
    program = program_of(strategy)
    tasks = [task for part in parts for task in _share_tasks(program, batch, part, writer)]
    # The real sinks pass the middle of the write behind the first row of the last
    # participant that has rows.
    first = next(
        number for number, task in enumerate(tasks) if task.which == parts[-1][1][0] and task.op is program.row
    )
    tasks[first] = _with(tasks[first], FailPoint.MID_WRITE)
    tasks[-1] = _with(tasks[-1], FailPoint.AFTER_PRE_COMMIT)
    if program.looks_first:
        tasks.insert(0, Task(Op.LOOK, batch, batch))
    handles = tuple(writer.handle(batch, number) for number, _ in parts)
    if order is Order.DECISION:
        tasks.append(Task(Op.STORE_HANDLES, batch, batch, (FailPoint.AFTER_HANDLES,), handles))
    else:
        tasks += program.commit(batch, parts, handles)
    return (*tasks, Task(Op.LOG_COMMIT, batch, batch, (FailPoint.AFTER_COMMIT_LOG,)))


def empty_batch_tasks(order: Order, batch: int) -> Tasks:
    """Return the tasks of a batch without rows, in which nobody writes or votes."""
    votes = (Task(Op.STORE_HANDLES, batch, batch, (FailPoint.AFTER_HANDLES,)),) if order is Order.DECISION else ()
    return (*votes, Task(Op.LOG_COMMIT, batch, batch, (FailPoint.AFTER_COMMIT_LOG,)))


def _share_tasks(program: "Program", batch: int, part: Share, writer: Writer) -> list[Task]:
    number, offsets = part
    handles = (writer.handle(batch, number),)
    tasks = [Task(program.row, offset, batch, (), handles) for offset in offsets]
    if program.vote is not None:
        tasks[-1] = _with(tasks[-1], FailPoint.BEFORE_PRE_COMMIT)
        tasks.append(Task(program.vote, number, batch, (), handles))
    return tasks


def _with(task: Task, point: FailPoint) -> Task:
    return task._replace(points=(*task.points, point))


def _halved(tasks: list[Task], point: FailPoint) -> None:
    """Add a failpoint after the first half of the tasks; a single task has no half, so it gets none."""
    if len(tasks) > 1:
        half = max(1, len(tasks) // 2) - 1
        tasks[half] = _with(tasks[half], point)


def commit_tasks(_batch: int, _parts: Sequence[Share], handles: Sequence[Handle]) -> list[Task]:
    """Return the tasks that commit every participant of one batch, one after the other."""
    tasks = [Task(Op.COMMIT, handle.partition, handle.batch, (), (handle,)) for handle in handles]
    _halved(tasks, FailPoint.MID_COMMIT)
    tasks[-1] = _with(tasks[-1], FailPoint.AFTER_COMMIT)
    return tasks


def flush_tasks(batch: int, parts: Sequence[Share], _handles: Sequence[Handle]) -> list[Task]:
    """Return the tasks that flush the logs of one batch row by row and confirm it, unless it is confirmed already."""
    rows = [Task(Op.FLUSH, offset, batch) for offset in _offsets(parts)]
    _halved(rows, FailPoint.MID_COMMIT)
    rows[-1] = _with(rows[-1], FailPoint.BEFORE_CONFIRM)
    return [Task(Op.LOOK, batch, batch), *rows, Task(Op.CONFIRM, batch, batch, (FailPoint.AFTER_COMMIT,))]


def mark_tasks(batch: int, parts: Sequence[Share], _handles: Sequence[Handle]) -> list[Task]:
    """Return the task that commits all rows of one batch together with its marker."""
    return [Task(Op.MARK, batch, batch, (FailPoint.AFTER_COMMIT,), (), _offsets(parts))]


def _offsets(parts: Sequence[Share]) -> tuple[int, ...]:
    return tuple(chain.from_iterable(offsets for _, offsets in parts))


def due(query: Query) -> list[tuple[int, tuple[Handle, ...]]]:
    """Return the stored votes of decided batches, in order."""
    return [(batch, handles) for batch, handles in query.handles if batch <= query.decided]


def settle_tasks(strategy: Strategy, words: tuple[str, ...], query: Query) -> Tasks:
    """Return the tasks that commit every stored and decided batch, for the order in which the decision comes first."""
    commit = program_of(strategy).commit
    tasks: list[Task] = []
    for batch, handles in due(query):
        if handles:
            tasks += commit(batch, logged(words, query, batch), handles)
        tasks.append(Task(Op.FORGET, batch, batch))
    return tuple(tasks)


def last_notification(query: Query) -> Tasks:
    """Return the last notification as a task, for the engine order, in which there is nothing left to commit."""
    return (Task(Op.TELL, query.decided, query.decided, (FailPoint.AFTER_COMMIT_LOG,)),) if query.decided >= 0 else ()


def logged(words: tuple[str, ...], query: Query, batch: int) -> tuple[Share, ...]:
    """Return the partitions and offsets in the logs of a planned batch."""
    return shares(words, query.start_of(batch), query.ends[batch])


def recovery_tasks(
    strategy: Strategy, words: tuple[str, ...], query: Query, transactions: Sequence[Transaction]
) -> Tasks:
    """Return the tasks of a restarted driver: finish decided batches, and drop all other transactions of the query."""
    steps = program_of(strategy).recover(words, query, transactions)
    if len(steps) > 1:
        steps[0][-1] = _with(steps[0][-1], FailPoint.MID_RESOLVE)
    return (*chain.from_iterable(steps), Task(Op.RESOLVED, 0, 0, (FailPoint.AFTER_RESOLVE,)))


def _finish_or_abort(_words: tuple[str, ...], query: Query, transactions: Sequence[Transaction]) -> list[list[Task]]:
    kept = [handle for _, handles in due(query) for handle in handles]
    dropped = [handle for handle in unfinished(query, transactions) if handle not in kept]
    steps = [(Op.COMMIT, handle) for handle in kept] + [(Op.ABORT, handle) for handle in dropped]
    return [[Task(op, handle.partition, handle.batch, (), (handle,))] for op, handle in steps]


def _flush_unconfirmed(words: tuple[str, ...], query: Query, _transactions: Sequence[Transaction]) -> list[list[Task]]:
    steps: list[list[Task]] = []
    for batch, handles in due(query):
        if handles and batch not in query.confirmed:
            for _, offsets in logged(words, query, batch):
                steps.append([Task(Op.FLUSH, offset, batch) for offset in offsets])
            steps.append([Task(Op.CONFIRM, batch, batch)])
    return steps


def unfinished(query: Query, transactions: Sequence[Transaction]) -> list[Handle]:
    """Return every unfinished transaction of this query, including attempts that no stored vote names."""
    return sorted(
        transaction.handle
        for transaction in transactions
        if transaction.status in (Status.OPEN, Status.PREPARED) and transaction.handle.generation == query.generation
    )


def skip(tasks: Tasks) -> tuple[Tasks, tuple[FailPoint, ...]]:
    """Return the rest of a program whose marker or confirmation exists, and the failpoints reached by skipping."""
    rest = tuple(dropwhile(lambda task: task.op in _WRITES_AGAIN, tasks))
    passed = [point for task in tasks[: len(tasks) - len(rest)] for point in task.points]
    return rest, tuple(point for point in passed if point in (FailPoint.AFTER_PRE_COMMIT, FailPoint.AFTER_COMMIT))


_WRITES_AGAIN = (Op.HAND_OVER, Op.MARK, Op.FLUSH, Op.CONFIRM)


def _nothing_to_commit(_batch: int, _parts: Sequence[Share], _handles: Sequence[Handle]) -> list[Task]:
    return []


def _nothing_to_recover(
    _words: tuple[str, ...], _query: Query, _transactions: Sequence[Transaction]
) -> list[list[Task]]:
    return []


@dataclass(frozen=True)
class Program:
    """The program of a strategy's drivers: write a batch, commit it, and resolve what a crash left."""

    row: Op
    """The operation of a task on each of its rows."""
    vote: Op | None = None
    """The operation of a task after its last row, if its rows must be pre-committed."""
    looks_first: bool = False
    """Whether the driver looks for the batch's marker before it writes anything."""
    commit: Callable[[int, Sequence[Share], Sequence[Handle]], list[Task]] = _nothing_to_commit
    """Returns the tasks that commit a batch, from its partitions and the handles that voted."""
    recover: Callable[[tuple[str, ...], Query, Sequence[Transaction]], list[list[Task]]] = _nothing_to_recover
    """Returns the steps of a recovery, each with its tasks; the words are the input, part of which is in the logs."""


def program_of(strategy: Strategy) -> Program:
    """Return the program of a strategy. A strategy without a branch here is a type error."""
    match strategy:
        case Strategy.APPEND | Strategy.IDEMPOTENT:
            return _WRITES
        case Strategy.BATCH_MARKER:
            return _MARKS
        case Strategy.WAL:
            return _LOGS
        case Strategy.TWO_PHASE:
            return _TRANSACTS
        case _:
            assert_never(strategy)


_WRITES = Program(Op.WRITE)
_MARKS = Program(Op.HAND_OVER, looks_first=True, commit=mark_tasks)
_LOGS = Program(Op.LOG, Op.SEAL, commit=flush_tasks, recover=_flush_unconfirmed)
_TRANSACTS = Program(Op.INSERT, Op.PREPARE, commit=commit_tasks, recover=_finish_or_abort)
