"""Writes each file of orders into an embedded store, with a marker in the same transaction.

Then it notes in a file that is synced how many are done. A start goes on after that number, and skips a file whose
marker is there. The arguments name the store and its durability; `setup` makes the folders.
"""

import json
import os
import sys
from pathlib import Path

ORDERS = sorted((Path(__file__).parent / "orders").iterdir())


def sqlite(journal, synchronous):
    import sqlite3

    db = sqlite3.connect("output/orders.db", isolation_level=None)
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.executescript(
        "BEGIN; CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT);"
        "CREATE TABLE IF NOT EXISTS done (file TEXT PRIMARY KEY); COMMIT"
    )

    def write(file, rows):
        db.execute("BEGIN")
        if db.execute("INSERT OR IGNORE INTO done VALUES (?)", [file]).rowcount:
            db.executemany("INSERT INTO orders VALUES (:id, :key)", rows)
        db.execute("COMMIT")

    return write


def duckdb():
    import duckdb

    db = duckdb.connect("output/orders.duckdb")
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT)")
    db.execute("CREATE TABLE IF NOT EXISTS done (file TEXT)")

    def write(file, rows):
        db.begin()
        if not db.execute("FROM done WHERE file = ?", [file]).fetchall():
            db.execute("INSERT INTO done VALUES (?)", [file])
            db.executemany("INSERT INTO orders VALUES ($id, $key)", rows)
        db.commit()

    return write


def lmdb(sync):
    import lmdb

    # Without a lock file, since no other process opens the store; its lock is memory that is mapped for writing.
    db = lmdb.open("output/orders.lmdb", sync=sync == "sync", lock=False, map_size=1 << 20)

    def write(file, rows):
        with db.begin(write=True) as transaction:
            if transaction.put(f"done {file}".encode(), b"", overwrite=False):
                start = transaction.stat()["entries"]
                for number, row in enumerate(rows, start):
                    transaction.put(f"row {number:08}".encode(), json.dumps(row).encode(), overwrite=False)

    return write


def chdb(fsync):
    from chdb.session import Session

    db = Session("output/orders.chdb")
    db.query(
        "CREATE TABLE IF NOT EXISTS orders (id Int32, key String) ENGINE = MergeTree ORDER BY id "
        f"SETTINGS non_replicated_deduplication_window = 100, fsync_after_insert = {fsync}, "
        f"fsync_part_directory = {fsync}"
    )

    def write(file, rows):
        values = ", ".join(f"({row['id']}, '{row['key']}')" for row in rows)
        db.query(f"INSERT INTO orders SETTINGS insert_deduplication_token = '{file}' VALUES {values}")

    return write


def done():
    path = Path("checkpoint/done")
    return int(path.read_text()) if path.exists() else 0


def save(number):
    with open("checkpoint/draft", "w") as draft:
        draft.write(str(number))
        draft.flush()
        os.fsync(draft.fileno())
    os.rename("checkpoint/draft", "checkpoint/done")
    sync("checkpoint")


def sync(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def setup():
    """Make the folders, which a power cut should not take away."""
    for folder in ("output", "checkpoint"):
        os.mkdir(folder)
    sync(".")


def load(store, settings):
    write = {"sqlite": sqlite, "duckdb": duckdb, "lmdb": lmdb, "chdb": chdb}[store](*settings)
    for number, path in enumerate(ORDERS, 1):
        if number > done():
            write(path.name, [json.loads(line) for line in path.read_text().splitlines()])
            save(number)


if __name__ == "__main__":
    if sys.argv[1] == "setup":
        setup()
    else:
        load(sys.argv[1], sys.argv[2:])
