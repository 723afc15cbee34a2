"""The object `db` or `folder` that real Spark passes to a learner's sink: an SQLite database, or a folder of files.

The classes are not in the sink's file, so that every line of that file that a crash test names is the learner's own.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from labkit.teach.exercises.own_sink import store

PATIENCE = 20.0
"""The number of seconds that a statement waits for another writer's lock."""


class Table:
    """The SQLite database that a sink receives; outside of BEGIN and COMMIT every statement commits at once."""

    def __init__(self, file: str) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None, timeout=PATIENCE)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        """Run one statement and return its rows as lists. Raises the errors of `sqlite3`."""
        return [list(row) for row in self._connection.execute(sql, parameters)]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @staticmethod
    def seen(file: str) -> list[list[Any]]:
        """Return the rows that readers see in the table `orders`; none if the table does not exist."""
        if not Path(file).exists():  # connecting would create the file
            return []
        with closing(sqlite3.connect(file)) as db:
            return store.orders_in(db)

    @staticmethod
    def empty(file: str) -> None:
        """Delete the database, and the journal that a killed writer may have left, before the next run of a test."""
        for name in (f"{file}-journal", file):
            Path(name).unlink(missing_ok=True)


class Folder(store.Folder):
    """The folder of text files that a sink receives; readers see only the rows in files that `manifest.json` lists."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder, most=-1)

    def close(self) -> None:
        """Do nothing, because a folder has no connection to close."""

    @staticmethod
    def seen(folder: str) -> list[list[Any]]:
        """Return the rows that readers see: all rows in the files that `manifest.json` lists."""
        return Folder(folder).see()

    @staticmethod
    def empty(folder: str) -> None:
        """Create the folder or delete its files (but no subfolders), before the next run of a test."""
        Path(folder).mkdir(exist_ok=True)
        for path in Path(folder).iterdir():
            if path.is_file():
                path.unlink()
