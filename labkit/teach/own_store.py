"""What a learner's sink is handed as `db` or `folder` when real Spark calls it: a database of SQLite, or a folder.

They stand here, and not in the file of the sink, so that a crash test names the sink's own lines.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from labkit.teach.exercises.own_sink import store

PATIENCE = 20.0
"""Seconds for which a statement waits for another writer."""


class Table:
    """A database of SQLite. Every statement commits by itself, unless it stands between BEGIN and COMMIT."""

    def __init__(self, file: str) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None, timeout=PATIENCE)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        """Runs one statement; gives its rows as lists. Raises the errors of `sqlite3`."""
        return [list(row) for row in self._connection.execute(sql, parameters)]

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    @staticmethod
    def seen(file: str) -> list[tuple[Any, ...]]:
        """What everybody can see."""
        there = "SELECT 1 FROM sqlite_master WHERE lower(name) = 'orders'"
        with closing(sqlite3.connect(file)) as db:
            if not db.execute(there).fetchall():
                return []
            return db.execute("SELECT id, item, amount FROM orders").fetchall()

    @staticmethod
    def empty(file: str) -> None:
        """Empties the store between two runs of a test. A writer that was killed has left its journal beside it."""
        for name in (f"{file}-journal", file):
            Path(name).unlink(missing_ok=True)


class Folder(store.Folder):
    """A folder of files, as a trial has it. Readers know the files that `manifest.json` names."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder, most=-1)

    def close(self) -> None:
        """Nothing is open between two requests."""

    @staticmethod
    def seen(folder: str) -> list[list[Any]]:
        """What everybody can see."""
        return Folder(folder).see()

    @staticmethod
    def empty(folder: str) -> None:
        """Empties the store between two runs of a test; what is no file stays."""
        Path(folder).mkdir(exist_ok=True)
        for path in Path(folder).iterdir():
            if path.is_file():
                path.unlink()
