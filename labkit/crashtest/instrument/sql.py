"""Records SQL that the user's code executes through sqlite3, and classifies statements.

A statement outside any transaction commits by itself; only the connection's state afterwards shows this. A
statement that only reads is no effect.
"""

import functools
import re
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder

_FIRST = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)(?:\s+(\w+))?", re.DOTALL)
_MORE = re.compile(r"(;|\bas\b)\s*(insert|update|delete|replace|drop|select|with)\b", re.IGNORECASE)
"""Matches rows that follow a table's definition, in a script or as the result of a query."""
_READS = {"select", "pragma", "explain", "show", "values", "fetch", "begin", "start", "set", "savepoint"}
_ENDS = {"commit": Kind.COMMIT, "end": Kind.COMMIT, "rollback": Kind.ROLLBACK, "abort": Kind.ROLLBACK}


def kind_of(sql: str) -> Kind | None:
    """Return the kind of a statement, by its first words; None if it changes nothing."""
    words = _FIRST.match(sql)
    first, second = (word.lower() if word else "" for word in words.groups()) if words else ("", "")
    if (first, second) == ("prepare", "transaction"):
        return Kind.PREPARE
    if first in _ENDS:
        return _ENDS[first]
    if first in {"create", "alter"}:
        return Kind.STATEMENT if _MORE.search(sql) else Kind.SCHEMA
    return None if first in _READS else Kind.STATEMENT


def ended(kind: Kind) -> Kind | None:
    """Return the kind of a statement if its words decide it; None if it depends on whether a transaction is open."""
    return None if kind is Kind.STATEMENT else kind


def short(sql: object) -> str:
    """Return a statement on one line, cut to 60 characters."""
    return " ".join(str(sql).split())[:60]


def instrument_sqlite(module: ModuleType) -> None:
    """Make every connection that is opened from now on record its statements."""
    plain = module.connect
    if getattr(plain, "recorded", False):
        return

    class Cursor(module.Cursor):  # type: ignore[name-defined]  # sqlite3, or what stands for it
        """A cursor that records its statements."""

        def execute(self, sql: str, *rest: Any) -> Any:
            return _execute(self.connection, super().execute, sql, *rest)

        def executemany(self, sql: str, *rest: Any) -> Any:
            return _execute(self.connection, super().executemany, sql, *rest)

        def executescript(self, sql: str) -> Any:
            return _execute(self.connection, super().executescript, sql)

    def connect(*arguments: Any, **named: Any) -> Any:
        named["factory"] = _connection(named.get("factory") or module.Connection, Cursor)
        return plain(*arguments, **named)

    connect.recorded = True  # type: ignore[attr-defined]  # a mark on a function
    module.connect = functools.wraps(plain)(connect)  # type: ignore[attr-defined]  # sqlite3, or what stands for it


@functools.cache
def _connection(base: Any, cursors: Any) -> Any:  # noqa: C901  # a class of short methods
    class Connection(base):
        """A connection that records its statements."""

        def cursor(self, factory: Any = None) -> Any:
            return super().cursor(cursors if factory is None else factory)

        def execute(self, sql: str, *rest: Any) -> Any:
            return self.cursor().execute(sql, *rest)

        def executemany(self, sql: str, *rest: Any) -> Any:
            return self.cursor().executemany(sql, *rest)

        def executescript(self, sql: str) -> Any:
            return self.cursor().executescript(sql)

        def commit(self) -> None:
            # Without an open transaction nothing comes to last by it.
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

        # The `__exit__` of sqlite3 commits in C, past the methods above.
        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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

    def decide() -> Kind:
        open_still = connection.in_transaction
        return ended(kind) or (Kind.STATEMENT if open_still else Kind.COMMIT)

    with recorder.effect(kind, short(sql), decide):
        return execute(sql, *rest)
