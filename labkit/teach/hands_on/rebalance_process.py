"""Fork two processes as consumers of one Kafka group, and suspend, delay or kill the first one at a named moment.

    python -m labkit.teach.hands_on.rebalance_process

reads a list of `Task` as one line of JSON from standard input, carries all of them out at the same time, and prints a
list of `Ended`. If standard input is closed before that, for example because the parent process died, all consumers
are killed, including suspended ones.
"""

import math
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from psycopg import sql

from labkit.host.servers.postgres_connection import Connection, connect
from labkit.stores.kafka.member import Member

PATIENCE = 90.0
"""The number of seconds that all consumers together may take."""
NEVER = "never"
"""The `problem` of a run whose first consumer ended without an error and never reached the moment of its fault."""
LONGEST = 60.0
"""The largest `longer` of a task in seconds, which leaves the consumers 30 s for their own work."""
MESSAGE = 200
"""The number of characters of a learner's error message that are shown."""
BATCH = 3
"""`max.poll.records`: the largest number of records that one poll returns."""


class Fault(StrEnum):
    """How labkit disturbs the first consumer: by killing it, suspending it, or delaying it inside a call."""

    KILL = "kill"
    STOP = "stop"
    SLOW = "slow"


class Source(NamedTuple):
    """A learner's function as text, with its name, and the file or cell and the line at which it begins."""

    name: str
    text: str
    place: str
    """Such as `shop.py` or `cell In[3]`."""
    line: int

    def function(self, module: str) -> Callable[..., object]:
        """Run the text as the module of this name, and return the function that it defines."""
        namespace: dict[str, Any] = {"__name__": module}
        text = "\n" * (self.line - 1) + self.text  # so that errors have the line numbers of the learner's file
        exec(compile(text, self.place, "exec"), namespace)  # noqa: S102  # the learner's own program
        function: Callable[..., object] = namespace[self.name]
        return function


class Task(msgspec.Struct, frozen=True):
    """A learner's program to run as two consumers, with the servers that they use.

    When the first consumer reports that it has reached `moment`, such as `"charged 4"`, labkit disturbs it by `fault`.
    """

    broker: str
    topic: str
    group: str
    records: int
    """The number of records in the topic; a consumer that owns the partition has read all at this offset."""
    postgres: str
    schema: str
    source: Source
    argument: str | None
    """The second argument of the function; None if it has none."""
    session: int
    """`session.timeout.ms` of the consumers; `max.poll.interval.ms` is a second longer."""
    fault: Fault
    moment: str
    longer: float
    """The number of seconds for which the first consumer stays stopped or slow after the second one has ended."""


class Ended(msgspec.Struct, frozen=True):
    """How the two consumers ended, and which `moments` in its program the first one reported.

    `first` and `second` are the type of an error, `signal 9`, or an empty text for a normal end. `problem` is empty if
    the run has a result. It is `NEVER` if the first consumer ended normally without reaching the moment at which labkit
    was to disturb it. Any other text says why there is no result, and what to do.
    """

    first: str
    second: str
    moments: Sequence[str]
    problem: str = ""


class Worker:
    """A consumer that a learner's program receives: one member of a Kafka consumer group, and a database."""

    def __init__(self, task: Task, name: str, at: Callable[[str], None]) -> None:
        self.name, self._task, self._at = name, task, at
        self._member: Member | None = None
        self.generation = -1
        """The group's generation in which the last records were polled."""
        self.db = connected(task)
        """A connection of psycopg; every statement commits by itself, except in `with worker.db.transaction():`."""

    def join(self, **settings: Any) -> None:
        """Create the consumer with kafka-python's settings, such as `enable_auto_commit=True`, and subscribe."""
        chosen = {
            "enable_auto_commit": False, "session_timeout_ms": self._task.session,
            "max_poll_interval_ms": self._task.session + 1_000, "heartbeat_interval_ms": self._task.session // 6,
        }  # fmt: skip
        self._member = Member(
            self._task.broker, self._task.topic, self._task.group, client_id=self.name, max_poll_records=BATCH,
            **{**chosen, **settings},
        )  # fmt: skip

    def poll(self) -> list[int]:
        """Return the numbers of the next orders, at most three; an empty list if none is left for this consumer."""
        member = self._joined()
        while True:
            if orders := member.poll():
                self.generation = member.generation
                self._at(f"polled {orders[0]}")
                return orders
            if member.has_read(self._task.records):
                return []

    def commit(self) -> None:
        """Commit for the group the offset that follows the last polled order, and wait for Kafka's answer.

        Raises `CommitFailedError` if the group has a newer generation, to which this consumer does not belong.
        """
        self._joined().commit()

    def charge(self, order: int) -> None:
        """Charge the customer of an order: insert a row into the table `charges`."""
        self.db.execute("INSERT INTO charges (who, id) VALUES (%s, %s)", [self.name, order])
        self._at(f"charged {order}")

    def at(self, moment: str) -> None:
        """Report that the program has reached the point called `moment`, where labkit may disturb the consumer."""
        self._at(moment)

    def close(self) -> None:
        """Leave the group, with a last commit if auto commit is on, and close the database's connection."""
        if self._member is not None:
            self._member.close()
        self.db.close()

    def _joined(self) -> Member:
        if self._member is None:
            raise RuntimeError("call worker.join() first")
        return self._member


def connected(task: Task) -> Connection:
    """Return a connection in autocommit mode to the PostgreSQL schema in which the task's tables are."""
    connection = connect(task.postgres)
    connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(task.schema)))
    return connection


class _Process:
    """A consumer in a forked process. It reports through one pipe, and another pipe tells it when it may continue."""

    def __init__(self, task: Task, name: str, moment: str) -> None:
        self.name, self.lines = name, list[str]()
        self.status: int | None = None
        self._rest = b""
        reports, self._go = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reports[0])
            os.close(self._go[1])
            os._exit(_run(task, name, moment, reports[1], self._go[0]))
        os.close(reports[1])
        os.close(self._go[0])
        self.pipe = reports[0]

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        with suppress(BrokenPipeError):
            os.write(self._go[1], b".")

    def kill(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)  # ends also a stopped process

    def hear(self) -> None:
        """Read the process's reports from its pipe; if the pipe is closed, note how the process ended."""
        piece = os.read(self.pipe, 65_536)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        self.lines += [line.decode(errors="replace") for line in lines]
        if not piece:
            _, self.status = os.waitpid(self.pid, 0)
            os.close(self.pipe)
            os.close(self._go[1])

    @property
    def end(self) -> str:
        if self.status is not None and os.WIFSIGNALED(self.status):
            return f"signal {os.WTERMSIG(self.status)}"
        return next((line[6:] for line in self.lines if line.startswith("error ")), "")

    @property
    def failed(self) -> str:
        """A message to the learner, without a full stop: the error with which this process ended, and a remedy."""
        explained = (line[4:] for line in self.lines if line.startswith("why "))
        return f"{self.name} ended with {next(explained, f'{self.end}; run the cell again')}"

    @property
    def moments(self) -> list[str]:
        return [line[3:] for line in self.lines if line.startswith("at ")]


class _Pair:
    """The two consumers of a task. `react` starts the second consumer, and later lets the first one continue."""

    def __init__(self, task: Task) -> None:
        self.task, self.first = task, _Process(task, "A", task.moment)
        self.second: _Process | None = None
        self._due: float | None = None

    @property
    def processes(self) -> list[_Process]:
        return [each for each in (self.first, self.second) if each is not None and each.status is None]

    def react(self) -> None:
        if self.second is None and self.task.moment in self.first.moments:
            if self.task.fault == Fault.KILL:
                self.first.kill()
            elif self.task.fault == Fault.STOP:
                os.kill(self.first.pid, signal.SIGSTOP)
            self.second = _Process(self.task, "B", "")
        if self.second is not None and self.second.status is not None and self._due is None:
            self._due = time.monotonic() + self.task.longer
        if self._due is not None and time.monotonic() >= self._due and self.first.status is None:
            self._due = math.inf
            self.first.go_on()

    def ended(self, *, late: bool) -> Ended:
        problem = ""
        waits = self._due is not None and self._due < math.inf  # A still waits until it may continue
        if late and not waits:
            culprit = self.second if self.second is not None and self.second.status is None else self.first
            last = culprit.moments[-1] if culprit.moments else "its start"
            problem = (
                f"{culprit.name} did not end within {PATIENCE:g} s after {last!r}; check what the function waits for, "
                "or run the cell again"
            )
        elif self.second is None:
            problem = self.first.failed if self.first.end else NEVER
        elif self.second.end:
            problem = self.second.failed
        elif late:
            problem = (
                f"B took too long for longer={self.task.longer:g}: A still waited until it may continue when the "
                f"{PATIENCE:g} s for both had passed; give longer a smaller number, or run the cell again"
            )
        return Ended(self.first.end, "" if self.second is None else self.second.end, self.first.moments, problem)


def _run(task: Task, name: str, moment: str, telling: int, waiting: int) -> int:
    waits = bool(moment)

    def tell(line: str) -> None:
        os.write(telling, f"{line.splitlines()[0]}\n".encode(errors="replace"))

    def at(here: str) -> None:
        nonlocal waits
        tell(f"at {here}")
        if waits and here == moment:
            waits = False  # the parent writes into this pipe only once
            os.read(waiting, 1)  # meanwhile the parent stops or kills this process, or lets it wait

    try:
        program = task.source.function("worker")
        with closing(Worker(task, name, at)) as worker:
            program(worker, *([] if task.argument is None else [task.argument]))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # every error of the learner's program is reported
        with suppress(OSError):
            tell(f"error {type(error).__name__}")
            tell(f"why {_explained(error, task.source)}")
        return 1
    return 0


def _explained(error: BaseException, source: Source) -> str:
    """Return text for a message about an error of the learner's program: its type, message and line, and a remedy."""
    message = ""
    with suppress(Exception):  # the learner's own class may fail to give its text
        message = " ".join(str(error).split())
    shown = f": {message[:MESSAGE]}{' ...' * (len(message) > MESSAGE)}" if message else ""
    frames = traceback.walk_tb(error.__traceback__)
    lines = [number for frame, number in frames if frame.f_code.co_filename == source.place]
    place = f"line {lines[-1] if lines else source.line} of {source.place}"
    remedy = "correct the function, and run the cell again"
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        remedy = "put all that the function needs inside it, imports too, because its processes get nothing else"
    return f"{type(error).__name__}{shown} ({place}); {remedy}"


def main() -> None:
    """Run the tasks in the first line of standard input (a JSON list), and print as JSON how the consumers ended."""
    channel = os.dup(1)
    os.dup2(2, 1)  # the learner's program must not print into the answer
    line = b""
    while not line.endswith(b"\n"):
        if not (piece := os.read(0, 65_536)):
            return
        line += piece
    pairs = [_Pair(task) for task in msgspec.json.decode(line, type=list[Task])]
    deadline, late = time.monotonic() + PATIENCE, False
    try:
        while running := {each.pipe: each for pair in pairs for each in pair.processes}:
            ready, _, _ = select.select([0, *running], [], [], 0.1)
            if 0 in ready and not os.read(0, 1):
                return
            for pipe in running.keys() & set(ready):
                running[pipe].hear()
            for pair in pairs:
                pair.react()
            if time.monotonic() > deadline:
                late = True
                break
    finally:
        for pair in pairs:
            for each in pair.processes:
                each.kill()
    with os.fdopen(channel, "wb") as output:
        output.write(msgspec.json.encode([pair.ended(late=late and bool(pair.processes)) for pair in pairs]))


if __name__ == "__main__":
    main()
