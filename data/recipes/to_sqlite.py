"""SQLite: rows and marker are one transaction, and the marker's primary key refuses a replay.

It demands that both tables are in the same database file, and that `synchronous` is not OFF.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

PATH = Path("output/rows.db")


def connect():
    PATH.parent.mkdir(exist_ok=True)
    db = sqlite3.connect(PATH, timeout=60)
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT, amount INTEGER)")
    db.execute("CREATE TABLE IF NOT EXISTS batches (query TEXT, batch INTEGER, PRIMARY KEY (query, batch))")
    return db


def write_batch(rows, query, batch):
    with closing(connect()) as db, db:  # the inner block commits, or rolls back after an error
        marker = db.execute("INSERT INTO batches VALUES (?, ?) ON CONFLICT DO NOTHING", (query, batch))
        if marker.rowcount:
            db.executemany("INSERT INTO orders VALUES (:id, :key, :amount)", rows)


def read():
    with closing(connect()) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute("SELECT * FROM orders")]


def reset():
    with closing(connect()) as db, db:
        db.execute("DELETE FROM orders")
        db.execute("DELETE FROM batches")
