"""What a driver does, as lists of tasks: one batch, one commit, one recovery; each task with the failpoints after it.

A strategy is told here and in `labkit.sinks`, twice on purpose: the two must agree. The points lie where the real sinks
call `reach`.
"""

from collections.abc import Sequence
from functools import cache
from itertools import chain, dropwhile
from typing import NamedTuple

from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import Strategy
from labkit.sim.models.pipeline.parts import Handle, Op, Query, Status, Task, Transaction

Share = tuple[int, tuple[int, ...]]
"""A partition and the offsets that it holds of one batch."""

Tasks = tuple[Task, ...]


@cache
def shares(words: tuple[str, ...], start: int, end: int) -> tuple[Share, ...]:
    """The partitions of a batch that hold rows, in order; partition 0 stays empty.

    Words go to partitions in the reverse order of the alphabet. For `hello` and `world` that is what Spark's hash does
    with three partitions, and these two words are all that is compared with real runs.
    """
    partition_of = {word: number for number, word in enumerate(sorted(set(words), reverse=True), start=1)}
    partitions = sorted({partition_of[word] for word in words[start:end]})
    return tuple(
        (number, tuple(offset for offset in range(start, end) if partition_of[words[offset]] == number))
        for number in partitions
    )


_ROW = {
    Strategy.APPEND: Op.WRITE,
    Strategy.IDEMPOTENT: Op.WRITE,
    Strategy.BATCH_MARKER: Op.HAND_OVER,
    Strategy.WAL: Op.LOG,
    Strategy.TWO_PHASE: Op.INSERT,
}


class Writer(NamedTuple):
    """The writer of a batch: a query (its name) and one of its drivers."""

    generation: int
    incarnation: int

    def handle(self, batch: int, partition: int) -> Handle:
        """The name of one task's transaction. Without the driver in it, a second attempt would meet the first."""
        return Handle(self.generation, batch, partition, self.incarnation)


@cache
def batch_tasks(strategy: Strategy, order: Order, batch: int, parts: tuple[Share, ...], writer: Writer) -> Tasks:
    """Everything from the first row to `commits/N`."""
    tasks = [task for part in parts for task in _share_tasks(strategy, batch, part, writer)]
    # The real sinks pass the middle of the write behind the first row of the last
    # participant that has rows.
    first = next(
        number for number, task in enumerate(tasks) if task.which == parts[-1][1][0] and task.op is _ROW[strategy]
    )
    tasks[first] = _with(tasks[first], FailPoint.MID_WRITE)
    tasks[-1] = _with(tasks[-1], FailPoint.AFTER_PRE_COMMIT)
    rows = tuple(chain.from_iterable(offsets for _, offsets in parts))
    handles = tuple(writer.handle(batch, number) for number, _ in parts)
    if order is Order.DECISION:
        tasks.append(Task(Op.STORE_HANDLES, batch, batch, (FailPoint.AFTER_HANDLES,), handles))
    elif strategy is Strategy.BATCH_MARKER:
        tasks = [Task(Op.LOOK, batch, batch), *tasks, Task(Op.MARK, batch, batch, (FailPoint.AFTER_COMMIT,), (), rows)]
    elif strategy is Strategy.WAL:
        tasks += flush_tasks(batch, parts)
    elif strategy is Strategy.TWO_PHASE:
        tasks += commit_tasks(handles)
    return (*tasks, Task(Op.LOG_COMMIT, batch, batch, (FailPoint.AFTER_COMMIT_LOG,)))


def empty_batch_tasks(order: Order, batch: int) -> Tasks:
    """A batch without a row: there is nothing to write, and nobody votes."""
    votes = (Task(Op.STORE_HANDLES, batch, batch, (FailPoint.AFTER_HANDLES,)),) if order is Order.DECISION else ()
    return (*votes, Task(Op.LOG_COMMIT, batch, batch, (FailPoint.AFTER_COMMIT_LOG,)))


def _share_tasks(strategy: Strategy, batch: int, part: Share, writer: Writer) -> list[Task]:
    number, offsets = part
    handles = (writer.handle(batch, number),)
    tasks = [Task(_ROW[strategy], offset, batch, (), handles) for offset in offsets]
    if strategy in _YES:
        tasks[-1] = _with(tasks[-1], FailPoint.BEFORE_PRE_COMMIT)
        tasks.append(Task(_YES[strategy], number, batch, (), handles))
    return tasks


_YES = {Strategy.WAL: Op.SEAL, Strategy.TWO_PHASE: Op.PREPARE}


def _with(task: Task, point: FailPoint) -> Task:
    return task._replace(points=(*task.points, point))


def _halved(tasks: list[Task], point: FailPoint) -> None:
    """Lays the point after the first half; a single thing cannot be half done."""
    if len(tasks) > 1:
        half = max(1, len(tasks) // 2) - 1
        tasks[half] = _with(tasks[half], point)


def commit_tasks(handles: Sequence[Handle]) -> list[Task]:
    """Commits every participant of one batch, one after the other."""
    tasks = [Task(Op.COMMIT, handle.partition, handle.batch, (), (handle,)) for handle in handles]
    _halved(tasks, FailPoint.MID_COMMIT)
    tasks[-1] = _with(tasks[-1], FailPoint.AFTER_COMMIT)
    return tasks


def flush_tasks(batch: int, parts: Sequence[Share]) -> list[Task]:
    """Flushes the logs of one batch row by row, unless it is confirmed, and confirms it."""
    rows = [Task(Op.FLUSH, offset, batch) for offset in chain.from_iterable(offsets for _, offsets in parts)]
    _halved(rows, FailPoint.MID_COMMIT)
    rows[-1] = _with(rows[-1], FailPoint.BEFORE_CONFIRM)
    return [Task(Op.LOOK, batch, batch), *rows, Task(Op.CONFIRM, batch, batch, (FailPoint.AFTER_COMMIT,))]


def due(query: Query) -> list[tuple[int, tuple[Handle, ...]]]:
    """The stored votes that are decided, in order."""
    return [(batch, handles) for batch, handles in query.handles if batch <= query.decided]


def settle_tasks(strategy: Strategy, words: tuple[str, ...], query: Query) -> Tasks:
    """Decision order: commits everything that is stored and decided."""
    tasks: list[Task] = []
    for batch, handles in due(query):
        if handles and strategy is Strategy.TWO_PHASE:
            tasks += commit_tasks(handles)
        elif handles:
            tasks += flush_tasks(batch, logged(words, query, batch))
        tasks.append(Task(Op.FORGET, batch, batch))
    return tuple(tasks)


def told_tasks(query: Query) -> Tasks:
    """Engine order: the last notification has nothing to commit, and yet it arrives."""
    return (Task(Op.TELL, query.decided, query.decided, (FailPoint.AFTER_COMMIT_LOG,)),) if query.decided >= 0 else ()


def logged(words: tuple[str, ...], query: Query, batch: int) -> tuple[Share, ...]:
    """What the logs of a planned batch hold."""
    return shares(words, query.start_of(batch), query.ends[batch])


def recovery_tasks(
    strategy: Strategy, words: tuple[str, ...], query: Query, transactions: Sequence[Transaction]
) -> Tasks:
    """What a restarted driver does before it replays: finish what was decided, drop everything else of this query."""
    steps: list[list[Task]] = []
    if strategy is Strategy.TWO_PHASE:
        kept = [handle for _, handles in due(query) for handle in handles]
        steps = [[Task(Op.COMMIT, handle.partition, handle.batch, (), (handle,))] for handle in kept]
        steps += [
            [Task(Op.ABORT, handle.partition, handle.batch, (), (handle,))]
            for handle in strays(query, transactions)
            if handle not in kept
        ]
    elif strategy is Strategy.WAL:
        for batch, handles in due(query):
            if handles and batch not in query.confirmed:
                for _, offsets in logged(words, query, batch):
                    steps.append([Task(Op.FLUSH, offset, batch) for offset in offsets])
                steps.append([Task(Op.CONFIRM, batch, batch)])
    if len(steps) > 1:
        steps[0][-1] = _with(steps[0][-1], FailPoint.MID_RESOLVE)
    return (*chain.from_iterable(steps), Task(Op.RESOLVED, 0, 0, (FailPoint.AFTER_RESOLVE,)))


def strays(query: Query, transactions: Sequence[Transaction]) -> list[Handle]:
    """Every unfinished transaction of this query, also of attempts that no stored vote names."""
    return sorted(
        transaction.handle
        for transaction in transactions
        if transaction.status in (Status.OPEN, Status.PREPARED) and transaction.handle.generation == query.generation
    )


def skip(tasks: Tasks) -> tuple[Tasks, tuple[FailPoint, ...]]:
    """What is left of a program when its marker or confirmation is there, and the points that are reached at once."""
    rest = tuple(dropwhile(lambda task: task.op in _WRITES_AGAIN, tasks))
    passed = [point for task in tasks[: len(tasks) - len(rest)] for point in task.points]
    return rest, tuple(point for point in passed if point in (FailPoint.AFTER_PRE_COMMIT, FailPoint.AFTER_COMMIT))


_WRITES_AGAIN = (Op.HAND_OVER, Op.MARK, Op.FLUSH, Op.CONFIRM)
