"""Records SQL that the user's code executes through sqlite3 or psycopg, and tells what commits.

A statement outside of any transaction commits by itself; which one that is, only the connection says afterwards. What
only reads is no effect. This module must not open a connection of its own.
"""

import functools
import re
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder

_FIRST = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)(?:\s+(\w+))?", re.DOTALL)
_MORE = re.compile(
    r"(;|\bas\b)\s*(insert|update|delete|replace|drop|select|with)\b", re.IGNORECASE
)
"""Behind a table's definition, rows of it: in a script, or as the result of a query."""
_READS = {
    "select",
    "pragma",
    "explain",
    "show",
    "values",
    "fetch",
    "begin",
    "start",
    "set",
    "savepoint",
    "release",
}
_ENDS = {
    "commit": Kind.COMMIT,
    "end": Kind.COMMIT,
    "rollback": Kind.ROLLBACK,
    "abort": Kind.ROLLBACK,
}


def kind_of(sql: str) -> Kind | None:
    """What a statement does, by its first words; None if nothing is changed by it."""
    found = _FIRST.match(sql)
    first, second = (
        (word.lower() if word else "" for word in found.groups()) if found else ("", "")
    )
    if (first, second) == ("prepare", "transaction"):
        return Kind.PREPARE
    if first in _ENDS:
        return _ENDS[first]
    if first in {"create", "alter"}:
        return Kind.STATEMENT if _MORE.search(sql) else Kind.SCHEMA
    return None if first in _READS else Kind.STATEMENT


def short(sql: object) -> str:
    """A statement on one line, without its tail."""
    return " ".join(str(sql).split())[:60]


def tap_sqlite(module: ModuleType) -> None:
    """Has every connection that is opened from now on record."""
    plain = module.connect
    if getattr(plain, "recorded", False):
        return

    class Cursor(module.Cursor):  # type: ignore[name-defined]
        """A cursor that records."""

        def execute(self, sql: str, *rest: Any) -> Any:
            return _execute(self.connection, super().execute, sql, *rest)

        def executemany(self, sql: str, *rest: Any) -> Any:
            return _execute(self.connection, super().executemany, sql, *rest)

        def executescript(self, sql: str) -> Any:
            return _execute(self.connection, super().executescript, sql)

    def connect(*arguments: Any, **named: Any) -> Any:
        named["factory"] = _connection(
            named.get("factory") or module.Connection, Cursor
        )
        return plain(*arguments, **named)

    connect.recorded = True  # type: ignore[attr-defined]
    module.connect = functools.wraps(plain)(connect)  # type: ignore[attr-defined]


@functools.cache
def _connection(base: Any, cursors: Any) -> Any:  # noqa: C901  # a class of short methods
    class Connection(base):
        """A connection that records."""

        def cursor(self, factory: Any = None) -> Any:
            return super().cursor(cursors if factory is None else factory)

        def execute(self, sql: str, *rest: Any) -> Any:
            return self.cursor().execute(sql, *rest)

        def executemany(self, sql: str, *rest: Any) -> Any:
            return self.cursor().executemany(sql, *rest)

        def executescript(self, sql: str) -> Any:
            return self.cursor().executescript(sql)

        def commit(self) -> None:
            if not self.in_transaction:
                super().commit()
                return
            with recorder.effect(Kind.COMMIT, "transaction"):
                super().commit()

        def rollback(self) -> None:
            if not self.in_transaction:
                super().rollback()
                return
            with recorder.effect(Kind.ROLLBACK, "transaction"):
                super().rollback()

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> Any:
            if kind is None:
                self.commit()
            else:
                self.rollback()
            return False

    return Connection


def _execute(connection: Any, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    kind = kind_of(sql)
    if kind is None or (kind in _ENDS.values() and not connection.in_transaction):
        return execute(sql, *rest)
    ended = kind if kind is not Kind.STATEMENT else None

    def decide() -> Kind:
        return ended or (Kind.STATEMENT if connection.in_transaction else Kind.COMMIT)

    with recorder.effect(kind, short(sql), decide):
        return execute(sql, *rest)


def tap_psycopg(module: ModuleType) -> None:
    """Wraps the methods of psycopg's connection and cursor that change something."""
    connection, cursor = module.Connection, module.Cursor
    if getattr(connection.commit, "recorded", False):
        return
    for name in ("execute", "executemany"):
        setattr(cursor, name, _psycopg_execute(getattr(cursor, name)))
    methods = {
        "commit": Kind.COMMIT,
        "rollback": Kind.ROLLBACK,
        "tpc_prepare": Kind.PREPARE,
    }
    methods |= {"tpc_commit": Kind.COMMIT, "tpc_rollback": Kind.ROLLBACK}
    for name, kind in methods.items():
        setattr(connection, name, _psycopg_method(getattr(connection, name), kind))


def _idle(connection: Any) -> bool:
    return connection.info.transaction_status.name == "IDLE"


def _psycopg_execute(execute: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(execute)
    def recorded(self: Any, query: Any, *rest: Any, **named: Any) -> Any:
        sql = query if isinstance(query, str) else str(query)
        kind = kind_of(sql)
        if kind is None:
            return execute(self, query, *rest, **named)
        ended = kind if kind is not Kind.STATEMENT else None

        def decide() -> Kind:
            return ended or (Kind.COMMIT if _idle(self.connection) else Kind.STATEMENT)

        with recorder.effect(kind, short(sql), decide):
            return execute(self, query, *rest, **named)

    return recorded


def _psycopg_method(method: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    @functools.wraps(method)
    def recorded(self: Any, *arguments: Any) -> Any:
        if not arguments and _idle(self):
            return method(self)
        with recorder.effect(kind, arguments[0] if arguments else "transaction"):
            return method(self, *arguments)

    recorded.recorded = True  # type: ignore[attr-defined]
    return recorded
