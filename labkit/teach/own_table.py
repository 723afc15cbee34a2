"""What a learner's sink calls `db` when real Spark calls it: a database of SQLite with one method.

It stands here, and not in the file of the sink, so that a crash test names the sink's own lines. This module must not
know Spark, and must not write a sink for anybody.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATIENCE = 20.0
"""Seconds for which a statement waits for another writer."""


class Table:
    """A database of SQLite. Every statement commits by itself, unless it stands between BEGIN and COMMIT."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None, timeout=PATIENCE)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        """Runs one statement; gives its rows as lists. Raises the errors of `sqlite3`."""
        return [list(row) for row in self._connection.execute(sql, parameters)]

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()
