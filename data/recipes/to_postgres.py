"""PostgreSQL: rows and marker are one transaction, and the marker's primary key refuses a replay.

It demands that `fsync` and `synchronous_commit` are on, which is the default.
"""

import os

import psycopg
from psycopg.rows import dict_row

ADDRESS = os.environ.get("POSTGRES", "")  # empty: libpq's own PGHOST, PGUSER, ...


def connect():
    db = psycopg.connect(ADDRESS, row_factory=dict_row)
    db.execute("CREATE TABLE IF NOT EXISTS orders (id bigint, key text, amount bigint)")
    db.execute("CREATE TABLE IF NOT EXISTS batches (query text, batch bigint, PRIMARY KEY (query, batch))")
    db.commit()
    return db


def write_batch(rows, query, batch):
    with connect() as db:  # commits at the end of the block, or rolls back after an error
        marker = db.execute("INSERT INTO batches VALUES (%s, %s) ON CONFLICT DO NOTHING", (query, batch))
        if marker.rowcount:
            db.cursor().executemany("INSERT INTO orders VALUES (%(id)s, %(key)s, %(amount)s)", rows)


def read():
    with connect() as db:
        return db.execute("SELECT * FROM orders").fetchall()


def reset():
    with connect() as db:
        db.execute("TRUNCATE orders, batches")
