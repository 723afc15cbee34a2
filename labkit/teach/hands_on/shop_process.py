"""Run a learner's program against the shop in a process that is killed at a named moment, then in a new process.

    python -m labkit.teach.hands_on.shop_process

reads a `Task` from standard input and prints a `Life` for each process in which the program ran. Those processes are
forked from this one, which has imported everything and holds no connection, so a restart takes milliseconds.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import psycopg
from psycopg import sql

from labkit.core.records import Observation
from labkit.host.servers.postgres_connection import Connection, connect
from labkit.stores.kafka.reader import READ_COMMITTED, Reader
from labkit.stores.kafka.store import KafkaStore
from labkit.stores.kafka.topic import Group
from labkit.teach.hands_on.rebalance_process import Source

Change = tuple[int, str, str]
"""A change of an order, and the message about it: the change's id, the name of the order, and its new state."""
PATIENCE = 60.0
"""The number of seconds after which a process that runs a learner's program is killed."""
PEEK, GET = "pg_logical_slot_peek_binary_changes", "pg_logical_slot_get_binary_changes"
"""The SQL functions that read a replication slot: the first leaves the changes unconfirmed, the second confirms them.
"""


class Place(msgspec.Struct, frozen=True):
    """Where a shop is: PostgreSQL's address, the schema (the replication slot has the same name), and the topic."""

    address: str
    schema: str
    topic: str
    """The folder of the topic's store."""


class Task(msgspec.Struct, frozen=True):
    """A learner's program to run in a process, the shop that it uses, and where to kill it."""

    place: Place
    source: Source
    changes: Sequence[Change]
    """The program is called once for each change; if there is none, it is called once, with only the shop."""
    kill: str
    """The moment at which the first process dies; an empty text for none."""


class Life(msgspec.Struct, frozen=True):
    """How one process of a learner's program ended, and what it had done until then.

    `signal` is the signal that ended it, or 0; `begun` is the number of calls of the program that began; `moments` are
    the names that it passed to `shop.at`; and `error` is an empty text if there was no error.
    """

    signal: int
    begun: int
    moments: Sequence[str]
    error: str = ""


def connected(place: Place) -> Connection:
    """Connect to the shop's tables in autocommit mode; `with db.transaction():` begins a transaction."""
    connection = connect(place.address)
    connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(place.schema)))
    return connection


def inserted(data: bytes) -> Change | None:
    """Return the change in an Insert message of `pgoutput`; None for any other message.

    Source: PostgreSQL 18, Logical Replication Message Formats.
    """
    if data[:1] != b"I":
        return None
    values, rest = [], data[8:]
    while rest:
        length = int.from_bytes(rest[1:5], "big") if rest[:1] == b"t" else 0
        start = 5 if rest[:1] == b"t" else 1  # after n (null) and u (unchanged) comes no value
        values.append(rest[start : start + length].decode())
        rest = rest[start + length :]
    return int(values[0]), values[1], values[2]


def streamed(db: Connection, place: Place, function: str) -> list[tuple[Change, str]]:
    """Read the replication slot with `function` (`PEEK` or `GET`); return each change with the LSN of its commit."""
    query = sql.SQL(
        "SELECT lsn::text, data FROM {}({slot}, NULL, NULL, 'proto_version', '1', 'publication_names', {slot})"
    )
    rows = db.execute(query.format(sql.Identifier(function), slot=sql.Literal(place.schema))).fetchall()
    changes: list[tuple[Change, str]] = []
    waiting: list[Change] = []
    for lsn, data in rows:
        if (change := inserted(data)) is not None:
            waiting.append(change)
        elif data[:1] == b"C":
            changes += [(each, lsn) for each in waiting]
            waiting = []
    return changes


def read(topic: str, start: int = 0) -> list[tuple[Change, int]]:
    """Return the changes in the topic from offset `start` on, each with its offset, at read_committed."""
    store = KafkaStore(Path(topic)).topic
    if (name := store.find()) is None:
        return []
    entries = Reader(store.address, name, READ_COMMITTED).read(start)
    return [(_change(entry.row), entry.position) for entry in entries]


def _change(row: Observation) -> Change:
    name, _, state = row.key.partition(" ")
    return row.offset, name, state


class ShopInProcess:
    """The shop that a learner's program receives: database, topic, and `at`, which may kill the program."""

    def __init__(self, place: Place, at: Callable[[str], None]) -> None:
        self.at = at
        """A function to call with the name of a moment, such as `"between 2"`, at which the process may be killed."""
        self.db = connected(place)
        """A connection of psycopg; every statement commits by itself, except in `with shop.db.transaction():`."""
        self._place = place
        self._store = KafkaStore(Path(place.topic))

    def publish(self, change: Change) -> None:
        """Send a message about a change to the topic, and wait for the broker's acknowledgement."""
        number, name, state = change
        self._store.append(Observation(number, f"{name} {state}", 1, 0, 1))

    def receive(self) -> Iterator[Change]:
        """Yield the changes from the topic, beginning at the committed offset of the warehouse's consumer group.

        Asking for the next change commits the offset that follows the previous change.
        """
        group = Group(self._store.topic, "warehouse")
        for change, position in read(self._place.topic, group.offset() or 0):
            yield change
            group.commit(position + 1)

    def peek(self) -> list[tuple[Change, str]]:
        """Return the changes that the replication slot has not confirmed yet, each with its LSN; do not confirm any."""
        return streamed(self.db, self._place, PEEK)

    def get(self) -> list[tuple[Change, str]]:
        """Return the changes that the replication slot has not confirmed yet, each with its LSN, and confirm them."""
        return streamed(self.db, self._place, GET)

    def confirm(self, lsn: str) -> None:
        """Advance the replication slot: all changes up to this LSN (position in PostgreSQL's WAL) were handled."""
        self.db.execute("SELECT pg_replication_slot_advance(%s, %s)", [self._place.schema, lsn])


def main() -> None:
    """Run a learner's program in a new process, and print how the process ended.

    Standard input has the `Task` as JSON. If the process was killed as the task demands, a second process continues
    with the remaining changes. The output is a JSON list with one `Life` for each process.
    """
    channel = os.dup(1)
    os.dup2(2, 1)  # the learner's program must not print between the records
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    lives = [_live(task, task.changes, task.kill)]
    rest = task.changes[lives[0].begun :]
    if lives[0].signal == signal.SIGKILL and not lives[0].error and (rest or not task.changes):
        lives.append(_live(task, rest, ""))
    with os.fdopen(channel, "wb") as output:
        output.write(msgspec.json.encode(lives))


def _live(task: Task, changes: Sequence[Change], kill: str) -> Life:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os._exit(_run(task, changes, kill, lambda line: os.write(writing, f"{line.splitlines()[0]}\n".encode())))
    os.close(writing)
    lines, late = _lines(reading, pid)
    _, status = os.waitpid(pid, 0)
    reports = [line.partition(" ") for line in lines]
    error = next((text for kind, _, text in reports if kind == "error"), "")
    if late:
        error = f"it did not end within {PATIENCE:g} s"
    elif os.WIFSIGNALED(status) and not (kill and reports and reports[-1] == ("at", " ", kill)):
        error = f"signal {os.WTERMSIG(status)} ended it"
    return Life(
        os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        sum(kind == "begin" for kind, _, _ in reports),
        [text for kind, _, text in reports if kind == "at"],
        error,
    )


def _lines(reading: int, pid: int) -> tuple[list[str], bool]:
    """Return the lines that the process `pid` wrote into its pipe, and whether this function killed the process.

    `reading` is the file descriptor of this pipe. The function kills the process `pid` if it runs longer than
    `PATIENCE` s, or if the current process has lost its parent.
    """
    reports, late = b"", False
    parent, deadline = os.getppid(), time.monotonic() + PATIENCE
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], 0.2)
            if ready:
                if not (piece := pipe.read(65_536)):
                    return reports.decode(errors="replace").splitlines(), late
                reports += piece
            elif not late and (time.monotonic() > deadline or os.getppid() != parent):
                os.kill(pid, signal.SIGKILL)
                late = True


def _run(task: Task, changes: Sequence[Change], kill: str, tell: Callable[[str], object]) -> int:
    def at(moment: str) -> None:
        tell(f"at {moment}")
        if kill and moment == kill:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        program = task.source.function("shop")
        shop = ShopInProcess(task.place, at)
        for arguments in [(each,) for each in changes] if task.changes else [()]:
            tell(f"begin {arguments}")
            program(shop, *arguments)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # every error of the learner's program is reported
        kind = "PostgreSQL" if isinstance(error, psycopg.Error) else type(error).__name__
        tell(f"error {kind}: {str(error) or 'no reason was given'}")
        return 1
    return 0


if __name__ == "__main__":
    main()
