"""What a table of PostgreSQL holds, and how everything is emptied; PGHOST names the server."""

import shutil

import psycopg
from psycopg.rows import dict_row


def read():
    """The rows, or none while there is no table."""
    with psycopg.connect(row_factory=dict_row) as db:
        if not db.execute("SELECT FROM pg_tables WHERE tablename = 'orders'").fetchall():
            return []
        return db.execute("SELECT id, key FROM orders").fetchall()


def reset():
    """Empties table, input and checkpoint."""
    with psycopg.connect() as db:
        db.execute("DROP TABLE IF EXISTS orders")
    for folder in ("inbox", "checkpoint"):
        shutil.rmtree(folder, ignore_errors=True)
