"""Finds commits of SQLite that are several writes, so that a kill between these leaves only a part of the transaction.

SQLite makes a transaction atomic by its journal on disk. With `journal_mode` OFF or MEMORY there is no such journal. A
transaction over several databases is atomic only if each of them has a rollback journal and the main database is a file
(https://sqlite.org/lang_attach.html). This module reads the state of the user's connection and changes nothing.
"""

import os
import time
from typing import Any, NamedTuple

_stat = os.stat

JOURNALS = ("delete", "truncate", "persist")
"""The journal modes with a rollback journal on disk; only such a journal can contain the name of a super-journal."""

NO_JOURNAL = ("off", "memory")

TICK = 0.02
"""The seconds within which two changes of a file may get the same modification time."""

Mark = tuple[tuple[int, int] | None, ...]
"""The modification time (in ns) and size of a database file and of its write-ahead log; None for a missing file."""


class Database(NamedTuple):
    """A database file that a connection has open, with its schema name, such as `main`."""

    schema: str
    file: str


class CommitWatch:
    """Observes one commit of a connection: create this object before the commit, and call `reason` after it."""

    def __init__(self, cursor: Any, errors: type[Exception]) -> None:
        """Record the state of the database files before the commit.

        `cursor` is a cursor whose statements are not recorded; `errors` is the base class of the library's errors.
        """
        self._cursor, self._errors = cursor, errors
        self._files: list[Database] | None
        try:
            self._files = self._databases()
        except errors:
            self._files = None
        several = self._files if self._files and len(self._files) > 1 else ()
        _let_time_pass([each.file for each in several])
        self._before = {each: _mark(each.file) for each in several}

    def reason(self) -> str:
        """Return, after the commit, the reason why it was several writes; empty if it was atomic."""
        if self._files is None:
            return _UNREADABLE
        changed = [each for each in self._files if each not in self._before or _mark(each.file) != self._before[each]]
        try:
            modes = {each: self._setting(each, "journal_mode") for each in changed}
            synced = all(self._setting(each, "synchronous") != "0" for each in changed)
        except self._errors:
            return _UNREADABLE
        weak = next((mode for mode in modes.values() if mode in NO_JOURNAL), "")
        if weak:
            return f"journal_mode={weak.upper()} keeps no journal on disk that could undo a part of a transaction"
        is_file = any(each.schema == "main" for each in self._files)
        if len(changed) < 2 or (is_file and synced and set(modes.values()) <= set(JOURNALS)):
            return ""
        names = ", ".join(each.schema for each in changed)
        why = "synchronous=OFF" if set(modes.values()) <= set(JOURNALS) and not synced else "journal_mode=WAL"
        why = why if is_file else "a main database in memory"
        return f"with {why} a transaction over several databases ({names}) is atomic in each of them only"

    def _databases(self) -> list[Database]:
        rows = self._cursor.execute("PRAGMA database_list").fetchall()
        found = [Database(_text(schema), _text(file)) for _, schema, file in rows if file]
        return [each for each in found if each.schema != "temp"]

    def _setting(self, database: Database, name: str) -> str:
        schema = database.schema.replace('"', '""')
        ((value,),) = self._cursor.execute(f'PRAGMA "{schema}".{name}').fetchall()
        return _text(value).lower()


_UNREADABLE = "the test could not read which databases it changes and how SQLite journals them"


def _text(value: Any) -> str:
    """Return a value of SQLite as text; it is bytes if the connection has `text_factory = bytes`."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _mark(file: str) -> Mark:
    return tuple(_of(path) for path in (file, f"{file}-wal"))


def _of(path: str) -> tuple[int, int] | None:
    try:
        found = _stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _let_time_pass(files: list[str]) -> None:
    """Wait until the last change of these files is at least `TICK` seconds old, so that a later change has another
    time.
    """
    latest = max((mark[0] for file in files for mark in _mark(file) if mark is not None), default=0) / 1e9
    left = latest + TICK - time.time()
    if 0 < left <= TICK:
        time.sleep(left)
