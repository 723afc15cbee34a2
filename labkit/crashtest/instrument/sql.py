"""Records SQL that the user's code executes through sqlite3, and classifies SQL statements.

A statement outside of a transaction commits by itself, which only the connection's state afterwards shows. So each
statement of `executescript` is an effect of its own, and in autocommit each row of `executemany`. A statement that only
reads is no effect.
"""

import functools
import re
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder
from labkit.crashtest.instrument.scripts import Part, first_words, parts
from labkit.crashtest.instrument.torn import CommitWatch

_MORE = re.compile(r"(;|\bas\b)\s*(insert|update|delete|replace|drop|select|with)\b", re.IGNORECASE)
"""A pattern for a table's definition that also adds rows, by a further statement or from a query."""
_READS = {"select", "pragma", "explain", "show", "values", "fetch", "begin", "start", "set", "savepoint"}
_BEGINS = {"insert", "update", "delete", "replace"}
"""The first words of statements before which sqlite3 opens a transaction by itself, unless in autocommit."""
_EACH_ROW = "executemany outside of a transaction commits each row by itself"
_EACH_STATEMENT = "executescript commits each statement outside of a transaction by itself"
_ENDS = {"commit": Kind.COMMIT, "end": Kind.COMMIT, "rollback": Kind.ROLLBACK, "abort": Kind.ROLLBACK}


def kind_of(sql: str) -> Kind | None:
    """Return the kind of effect of an SQL statement, by its first words; None if it changes nothing."""
    first, second = first_words(sql)
    if (first, second) == ("prepare", "transaction"):
        return Kind.PREPARE
    if first in _ENDS:
        return _ENDS[first]
    if first in {"create", "alter"}:
        return Kind.STATEMENT if _MORE.search(sql) else Kind.SCHEMA
    return None if first in _READS else Kind.STATEMENT


def ended(kind: Kind) -> Kind | None:
    """Return the kind of effect of a statement if its words alone decide it.

    Return None if it depends on whether a transaction is open.
    """
    return None if kind is Kind.STATEMENT else kind


def short(sql: object) -> str:
    """Return a statement on one line, cut to 60 characters."""
    return " ".join(str(sql).split())[:60]


def instrument_sqlite(module: ModuleType) -> None:
    """Make every sqlite3 connection that is opened from now on record its statements."""
    plain = module.connect
    if getattr(plain, "recorded", False):
        return
    cursors, watch = _cursor(module), functools.partial(_Watched, module)

    def connect(*arguments: Any, **named: Any) -> Any:
        named["factory"] = _connection(named.get("factory") or module.Connection, cursors, watch)
        return plain(*arguments, **named)

    connect.recorded = True  # type: ignore[attr-defined]  # a mark on a function
    module.connect = functools.wraps(plain)(connect)  # type: ignore[attr-defined]  # sqlite3, or what stands for it


def _cursor(module: Any) -> Any:
    """Return a class of cursors that record their statements; `module` is sqlite3, or a module that replaces it."""

    class Cursor(module.Cursor):
        """A sqlite3 cursor that records its statements as effects."""

        _rows: int | None = None
        """The number of rows that an `executemany` recorded row by row has changed; None after any other statement."""

        @property
        def rowcount(self) -> int:
            return int(super().rowcount) if self._rows is None else self._rows

        def execute(self, sql: str, *rest: Any) -> Any:
            self._rows = None
            return _execute(_Watched(module, self.connection), super().execute, sql, *rest)

        def executemany(self, sql: Any, rows: Any, /) -> Any:
            self._rows = None
            plain, watched = super().executemany, _Watched(module, self.connection)
            if not isinstance(sql, str) or not _row_by_row(self.connection, sql):
                return _execute(watched, plain, sql, rows, several=_EACH_ROW)
            remaining = iter(rows)
            # Without a row it only checks the statement, as it does before the first row.
            plain(sql, ())
            changed = 0
            for row in remaining:
                _execute(watched, plain, sql, [row])
                changed += max(int(super().rowcount), 0)
            self._rows = changed
            return self

        def executescript(self, sql: Any, /) -> Any:
            self._rows = None
            plain, watched = super().executescript, _Watched(module, self.connection)
            if not isinstance(sql, str):
                return plain(sql)
            several = parts(sql, module.complete_statement)
            if _is_legacy(self.connection) and self.connection.in_transaction:
                _recorded(watched, Kind.COMMIT, "transaction", lambda: module.Connection.commit(self.connection))
            for part in several:
                _execute_part(watched, plain, part)
            return self

    return Cursor


@functools.cache
def _connection(base: Any, cursors: Any, watch: Any) -> Any:  # noqa: C901  # a class of short methods
    class Connection(base):
        """A sqlite3 connection that records its statements, commits and rollbacks as effects."""

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
            _recorded(watch(self), Kind.COMMIT, "transaction", super().commit)

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


class _Watched(NamedTuple):
    """A sqlite3 connection for which it is checked whether each commit is several writes."""

    module: Any
    connection: Any

    @property
    def commits(self) -> bool:
        """Whether no transaction is open, so the last statement has committed."""
        return not self.connection.in_transaction

    def watch(self) -> CommitWatch:
        """Begin to observe a commit of the connection, through a cursor that is not recorded."""
        return CommitWatch(self.module.Cursor(self.connection), self.module.Error)


def _recorded(
    watched: _Watched,
    kind: Kind,
    target: str,
    act: Callable[[], Any],
    decide: Callable[[], Kind] | None = None,
    *,
    several: str = "",
) -> Any:
    """Call `act`, record it as one effect of the connection, and return its result.

    `several` is the reason why it is several commits if it commits at all; empty if it is one.
    """
    watch: list[CommitWatch] = []
    with recorder.effect(kind, target, decide, lambda: several or watch[0].reason()):
        watch.append(watched.watch())
        return act()


def _execute(watched: _Watched, execute: Callable[..., Any], sql: str, *rest: Any, several: str = "") -> Any:
    kind = kind_of(sql)
    if kind is None or (kind in _ENDS.values() and watched.commits):
        return execute(sql, *rest)

    def decide() -> Kind:
        return ended(kind) or (Kind.COMMIT if watched.commits else Kind.STATEMENT)

    return _recorded(watched, kind, short(sql), lambda: execute(sql, *rest), decide, several=several)


def _execute_part(watched: _Watched, execute: Callable[[str], Any], part: Part) -> None:
    """Execute a part of a script, and record it as one effect, whose kind the part's last statement decides."""
    kinds = [kind for each in part.statements if (kind := kind_of(each)) is not None]
    if not kinds:
        execute(part.text)
        return
    if len(part.statements) == 1:
        _execute(watched, lambda _: execute(part.text), part.statements[0])
        return
    undone = kind_of(part.statements[-1]) is Kind.ROLLBACK

    def decide() -> Kind:
        if undone and part.is_whole:
            return Kind.ROLLBACK
        return Kind.COMMIT if watched.commits else Kind.STATEMENT

    several = "" if part.is_whole else _EACH_STATEMENT
    _recorded(watched, Kind.STATEMENT, short(part.text), lambda: execute(part.text), decide, several=several)


def _is_legacy(connection: Any) -> bool:
    """Return whether the connection's `isolation_level` controls transactions, and not its `autocommit`
    (Python 3.12).
    """
    return not isinstance(getattr(connection, "autocommit", -1), bool)


def _row_by_row(connection: Any, sql: str) -> bool:
    """Return whether `executemany` would commit each row of this statement by itself."""
    if connection.in_transaction or kind_of(sql) is None:
        return False
    if not _is_legacy(connection):
        return True
    return connection.isolation_level is None or first_words(sql)[0] not in _BEGINS
