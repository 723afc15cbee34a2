"""A shop that writes to a database and to a Kafka topic, to show what a real SIGKILL between the two writes leaves.

    orders       the committed changes of orders
    outbox       messages about these changes, written in the same transaction, and marked once they are sent
    the topic    the messages that the warehouse receives
    seen         the ids of the messages that the warehouse has processed
    parcels      the parcels that the warehouse has sent

The warehouse's tables are in the same PostgreSQL as the shop's, but no transaction here writes to both.
"""

import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.host import addresses
from labkit.host.processes.own_python import own_python
from labkit.host.servers.postgres_connection import Connection, explained, redacted
from labkit.teach.hands_on.answers import ServerAnswer
from labkit.teach.hands_on.kafka import kafka
from labkit.teach.hands_on.postgres import Session, postgres
from labkit.teach.hands_on.rebalance import source_of
from labkit.teach.hands_on.shop_process import GET, PATIENCE, PEEK, Change, Life, Place, Task, connected, read, streamed
from labkit.teach.server_outcomes import ShopOutcome

TABLES = (
    "CREATE TABLE orders (id int PRIMARY KEY, name text, state text)",
    "CREATE TABLE outbox (id int PRIMARY KEY, name text, state text, sent boolean DEFAULT false)",
    "CREATE TABLE seen (id int PRIMARY KEY)",
    "CREATE TABLE parcels (id int, name text, state text, place serial)",
)


class Shop:
    """The shop of the exercises on the outbox pattern: PostgreSQL tables and a Kafka topic.

    A change is `(id, order, state)`, such as `(2, "B", "paid")`.
    """

    def __init__(self) -> None:
        self._postgres = postgres()
        session = self._postgres.session("shop")
        level = session.run("SHOW wal_level").value
        if level != "logical":
            raise ServiceUnavailable(
                f"The PostgreSQL server that the environment variable {addresses.POSTGRES} names runs with wal_level = "
                f"{level}, but logical decoding needs wal_level = logical; set wal_level = logical and restart the "
                f"server, or unset {addresses.POSTGRES} so that labkit starts a private server."
            )
        self._topic = kafka().topic()
        self._place = Place(self._postgres.address, self._postgres.name, str(self._topic.store.folder))
        self._replication: Connection | None = None
        session.run(*TABLES)
        self.db = connected(self._place)
        """A connection of psycopg to the shop's tables; every statement commits by itself."""
        self._postgres.at_clean(self.close)

    def session(self, name: str) -> Session:
        """Open a PostgreSQL connection under this name, to send SQL by hand."""
        return self._postgres.session(name)

    def sell(self, change: Change) -> None:
        """Insert a change of an order, and the same row into the outbox table, in one transaction."""
        with self.db.transaction():
            self.db.execute("INSERT INTO orders VALUES (%s, %s, %s)", change)
            self.db.execute("INSERT INTO outbox VALUES (%s, %s, %s)", change)

    def run(self, program: Callable[..., object], *changes: Change, kill: str = "") -> ServerAnswer:
        """Run a function of yours in a separate process, once for each change, and report how the process ended.

        The function gets the shop, and the change if there is one. With `kill`, SIGKILL ends the process when the
        function calls `shop.at(kill)`. A new process then continues with the next change or, without changes, calls the
        function again. Raises `InvalidInput` if the function never makes that call, and `JobFailed` if it raises an
        error.
        """
        source = source_of(program, "shop.run(relay)")
        name = source.name
        lives = self._lives(Task(self._place, source, changes, kill))
        if error := next((life.error for life in lives if life.error), ""):
            remedy = "correct the function, and run the cell again"
            if error.startswith("NameError"):
                remedy = (
                    "its process gets only the source of this function, so define and import in it all that it needs"
                )
            raise JobFailed(f"{name}: {error}; {remedy}.")
        if not kill:
            return ServerAnswer(f"{name}: ended")
        if lives[0].signal == 0:
            moments = ", ".join(map(repr, dict.fromkeys(lives[0].moments))) or "none"
            raise InvalidInput(f"{name} never called shop.at({kill!r}); name a moment that it reached: {moments}.")
        went_on = "a new one went on" if len(lives) > 1 else "no change was left, so no new one started"
        return ServerAnswer(f"{name}: the process died by signal {lives[0].signal} at '{kill}'; {went_on}")

    def _lives(self, task: Task) -> list[Life]:
        words = own_python("-m", "labkit.teach.hands_on.shop_process")
        try:
            ended = subprocess.run(
                words, input=msgspec.json.encode(task), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                timeout=3 * PATIENCE,
            )  # fmt: skip
            return msgspec.json.decode(ended.stdout, type=list[Life])
        except (subprocess.TimeoutExpired, msgspec.DecodeError):
            raise JobFailed(
                f"{task.source.name}: the process that runs it ended without an answer; run the cell again."
            ) from None

    def messages(self) -> list[Change]:
        """Return the changes in the topic's messages, in the order of the topic."""
        return [change for change, _ in read(self._place.topic)]

    def parcels(self) -> list[Change]:
        """Return the changes for which the warehouse has sent a parcel, in the order of sending.

        The warehouse is a consumer of the topic.
        """
        return self._rows("SELECT id, name, state FROM parcels ORDER BY place")

    def outcome(self, messages: Sequence[Change] | None = None) -> ShopOutcome:
        """Return the verdict on whether each committed change has exactly one message.

        The messages are those in the topic or, if you pass them, `messages`. A message about a change that was never
        committed counts as unexpected.
        """
        counts: dict[str, int] = {}
        due: dict[Change, Record] = {}
        for change in self._rows("SELECT id, name, state FROM orders ORDER BY id"):
            counts[change[1]] = counts.get(change[1], 0) + 1
            due[change] = Record(change[0], change[1], counts[change[1]])
        got = self.messages() if messages is None else messages
        rows = [Observation(*due.get(each, (each[0], each[1], 0)), 0, 1) for each in map(_as_change, got)]
        return ShopOutcome(judge(due.values(), History([*rows, Reading("end")])))

    def open_slot(self) -> str:
        """Create the publication and the replication slot of the outbox; return the name of the slot's snapshot."""
        with explained(self.db, redacted(self._place.address)):
            self.db.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE outbox").format(self._name))
            self._replication = psycopg.connect(
                make_conninfo(self._place.address, replication="database"), autocommit=True,
                cursor_factory=psycopg.ClientCursor,
            )  # fmt: skip
            create = sql.SQL("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput (SNAPSHOT 'export')").format(self._name)
            row = self._replication.execute(create).fetchone()
        assert row is not None
        return str(row[2])

    def rows(self, snapshot: str = "") -> list[Change]:
        """Return the rows of the outbox table as they are now, or as they were in the snapshot of `open_slot`."""
        query = "SELECT id, name, state FROM outbox ORDER BY id"
        if not snapshot:
            return self._rows(query)
        with self.db.transaction():
            self.db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.db.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
            return self._rows(query)

    def peek(self) -> list[Change]:
        """Return the changes that the replication slot has not confirmed yet, and leave them unconfirmed."""
        return [change for change, _ in streamed(self.db, self._place, PEEK)]

    def get(self) -> list[Change]:
        """Return the changes that the replication slot has not confirmed yet, and confirm them."""
        return [change for change, _ in streamed(self.db, self._place, GET)]

    @property
    def slot(self) -> str:
        """The name of the shop's replication slot, which is also the name of the publication."""
        return self._place.schema

    @property
    def _name(self) -> sql.Identifier:
        return sql.Identifier(self._place.schema)

    def _rows(self, query: str) -> list[Change]:
        return [_as_change(row) for row in self.db.execute(query.encode())]

    def close(self) -> None:
        """Drop the publication and the replication slot, for which the server would otherwise keep WAL; disconnect."""
        if self._replication is not None:
            self._replication.close()
        with suppress(psycopg.Error):
            slots = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
            self.db.execute(slots, [self.slot])
            self.db.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(self._name))
        self.db.close()


@takes("lab.shop()")
def shop() -> Shop:
    """Return a new shop on a real PostgreSQL and a real Kafka, for exercises on the outbox pattern.

    The servers are yours, or private ones that end with this process. Removes the tables and the topic of an earlier
    call. Raises `ServiceUnavailable` if no server can be started, or if your PostgreSQL does not have
    wal_level=logical.
    """
    return Shop()


def _as_change(row: Sequence[Any]) -> Change:
    try:
        number, name, state = row
        return int(number), str(name), str(state)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{str(row)[:40]!r} is not a message; write (id, order, state), such as (2, 'B', 'paid')."
        ) from None
