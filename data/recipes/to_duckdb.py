"""DuckDB: rows and marker are one transaction, and the marker says whether the batch was written.

It demands one process at a time: a reader in another process waits, or fails, while the job has the file open.
"""

import contextlib
from pathlib import Path

import duckdb

PATH = Path("output/rows.duckdb")


def write_batch(rows, query, batch):
    PATH.parent.mkdir(exist_ok=True)
    with duckdb.connect(PATH) as db:
        db.execute("CREATE TABLE IF NOT EXISTS orders (id BIGINT, key VARCHAR, amount BIGINT)")
        db.execute("CREATE TABLE IF NOT EXISTS batches (query VARCHAR, batch BIGINT, PRIMARY KEY (query, batch))")
        db.begin()
        if db.execute("SELECT 1 FROM batches WHERE query = ? AND batch = ?", [query, batch]).fetchone():
            return  # closing the connection rolls back
        db.executemany("INSERT INTO orders VALUES ($id, $key, $amount)", rows)
        db.execute("INSERT INTO batches VALUES (?, ?)", [query, batch])
        db.commit()


def read():
    if not PATH.exists():
        return []
    with duckdb.connect(PATH, read_only=True) as db, contextlib.suppress(duckdb.CatalogException):
        found = db.execute("SELECT * FROM orders")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return []  # the job has not made the table yet


def reset():
    for path in PATH.parent.glob("rows.duckdb*"):
        path.unlink()
