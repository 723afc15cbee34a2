"""Run two consumers of one Kafka group as real processes, and suspend or kill the first one by a signal, or delay it.

The consumers write into three tables of PostgreSQL:

    charges      which consumer charged the customer of which order, in order of time
    progress     one row for the partition: the newest generation that wrote, and the number of the next order
    seen         the ids that a receiver remembers

Every program has its own tables, and its own topic with nine orders in one partition.
"""

import inspect
import subprocess
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import msgspec
import psycopg
from psycopg import sql

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.host.processes.own_python import own_python
from labkit.host.servers.postgres_connection import connect
from labkit.stores.kafka.member import fill, least_session
from labkit.stores.kafka.topic import Group
from labkit.teach.executed import shell_here
from labkit.teach.hands_on.kafka import Topic, kafka
from labkit.teach.hands_on.postgres import postgres
from labkit.teach.hands_on.rebalance_process import LONGEST, NEVER, PATIENCE, Ended, Fault, Source, Task, connected
from labkit.teach.server_outcomes import RebalanceOutcome

ORDERS = 9
"""The number of orders in the topic, from 0 on; an order's number is its offset."""
GROUP = "payments"
SESSION = 3_000
"""`session.timeout.ms` of the consumers in milliseconds, unless the broker demands more."""
TABLES = (
    "CREATE TABLE charges (place serial, who text, id int)",
    "CREATE TABLE progress (generation int, following int)",
    "INSERT INTO progress VALUES (0, 0)",
    "CREATE TABLE seen (id int PRIMARY KEY, at timestamptz DEFAULT clock_timestamp(), place serial)",
)


@takes("lab.rebalance(commit_after, stop='charged 4')")
def rebalance(
    *programs: Callable[..., object],
    stop: str = "",
    slow: str = "",
    kill: str = "",
    longer: float = 0,
    each: Mapping[str, str] | None = None,
) -> dict[str, RebalanceOutcome]:
    """Run each program as two consumers of one Kafka group, disturb one of them, and judge which orders were charged.

    A program is a function that gets a worker: an object with `join`, `poll`, `commit`, `charge` and `db`. Pass one of
    `stop`, `slow` and `kill`, with a moment in the program, such as `"charged 4"`. When the first consumer, A, reaches
    this moment for the first time, labkit suspends A with SIGSTOP (`stop`), delays A inside a call (`slow`), or kills A
    with SIGKILL (`kill`). Then the second consumer, B, joins the group, takes over and ends. A suspended or delayed A
    continues `longer` seconds after that, at most 60. `each` maps names to texts: one program runs once for each text
    and gets the text as its second argument. All runs happen at the same time. Returns a dict from the name of the
    program, or the name in `each`, to the outcome. Raises `InvalidInput` if A never reaches the moment, and `JobFailed`
    if A fails before it, or if B fails.
    """
    chosen = [(fault, moment) for fault, moment in zip(Fault, (kill, stop, slow), strict=True) if moment]
    if not programs or len(chosen) != 1 or (each is not None and len(programs) != 1):
        raise InvalidInput(
            "lab.rebalance() needs at least one program and exactly one of the parameters `stop`, `slow` and `kill`, "
            "as in lab.rebalance(commit_after, stop='charged 4'). The parameter `each` runs one program several times, "
            "so with `each` pass only one program."
        )
    if each is not None and not each:
        raise InvalidInput(
            "lab.rebalance(): the parameter `each` is an empty dict, so no program would run; write at least one "
            "entry, as in each={'short': '1 s'}."
        )
    if not 0 <= longer <= LONGEST:
        raise InvalidInput(
            f"lab.rebalance(): longer={longer:g} is not possible; write a number of seconds from 0 to {LONGEST:g}, "
            f"because all consumers together must end within {PATIENCE:g} s."
        )
    if kill and longer:
        raise InvalidInput(
            "lab.rebalance(): a killed consumer never continues, so the parameter `longer` has no effect; omit it."
        )
    sources = [source_of(program, "lab.rebalance(commit_after, stop='charged 4')") for program in programs]
    runs = [(source.name, None) for source in sources] if each is None else list(each.items())
    if len({name for name, _ in runs}) < len(runs):
        raise InvalidInput("lab.rebalance(): two programs have the same name; rename one of the functions.")
    database, broker = postgres(), kafka()
    session, (fault, moment) = max(SESSION, least_session(broker.address)), chosen[0]
    tasks, topics = list[Task](), list[Topic]()
    for number, (_, argument) in enumerate(runs):
        source = sources[number] if each is None else sources[0]
        topics.append(topic := broker.topic())
        schema = f"{database.name}_{number}"
        task = Task(
            broker.address, topic.name, f"{topic.name}.{GROUP}", ORDERS, database.address, schema, source, argument,
            session, fault, moment, longer,
        )  # fmt: skip
        database.at_clean(partial(_drop, database.address, schema))
        _prepare(task)
        tasks.append(task)
    results = zip(runs, tasks, topics, _carried_out(tasks), strict=True)
    return {name: _outcome(name, task, topic, ended) for (name, _), task, topic, ended in results}


def _prepare(task: Task) -> None:
    with closing(connect(task.postgres)) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(task.schema)))
    with closing(connected(task)) as connection:
        for statement in TABLES:
            connection.execute(statement.encode())
    fill(task.broker, task.topic, (f"order {order}" for order in range(ORDERS)))


def _carried_out(tasks: Sequence[Task]) -> list[Ended]:
    words = own_python("-m", "labkit.teach.hands_on.rebalance_process")
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(tasks) + b"\n")
            process.stdin.flush()
            answer = process.stdout.read()
        finally:
            process.stdin.close()  # makes the process kill all remaining consumers
    try:
        return msgspec.json.decode(answer, type=list[Ended])
    except msgspec.DecodeError:
        raise JobFailed("The process that runs the consumers ended without an answer; run the cell again.") from None


def _outcome(name: str, task: Task, topic: Topic, ended: Ended) -> RebalanceOutcome:
    if ended.problem == NEVER:
        moments = ", ".join(map(repr, dict.fromkeys(ended.moments))) or "none"
        raise InvalidInput(f"{name} never reached the moment {task.moment!r}; name one that it reached: {moments}.")
    if ended.problem:
        raise JobFailed(f"{name}: {ended.problem}.")
    with closing(connected(task)) as connection:
        rows = connection.execute(b"SELECT who, id FROM charges ORDER BY place").fetchall()
    charges = [(str(who), int(order)) for who, order in rows]
    due = [Record(order, "account", order + 1) for order in range(ORDERS)]
    seen = [Observation(order, "account", order + 1, 0, 1) for _, order in charges]
    return RebalanceOutcome(
        judge(due, History([*seen, Reading("end")])), charges, (ended.first, ended.second),
        Group(topic.store.topic, GROUP).offset(),
    )  # fmt: skip


def _drop(address: str, schema: str) -> None:
    with suppress(psycopg.Error), psycopg.connect(address) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def source_of(program: object, example: str) -> Source:
    """Return a learner's function as text, with its name and place; `example` is a correct call, for error messages.

    Raises `InvalidInput` if `program` is not a function that was defined with `def`, or if its source cannot be read.
    """
    call = f"{example.partition('(')[0]}()"
    if not inspect.isfunction(program) or program.__name__ == "<lambda>":
        raise InvalidInput(f"{call} needs a function that you have defined with def, as in {example}.")
    try:
        lines, first = inspect.getsourcelines(program)
    except (OSError, TypeError):
        raise InvalidInput(
            f"{call} cannot read the source of {program.__name__[:40]}; define the function in a cell, with def."
        ) from None
    return Source(program.__name__, textwrap.dedent("".join(lines)), _place(program), first)


def _place(program: Callable[..., object]) -> str:
    """Return the file of a function as a learner knows it: `cell In[3]` in a notebook, otherwise the file's name."""
    file = inspect.unwrap(program).__code__.co_filename
    cell = getattr(getattr(shell_here(), "compile", None), "format_code_name", lambda _: None)(file)
    return f"cell {cell[1]}" if cell else Path(file).name
