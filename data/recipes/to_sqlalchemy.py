"""SQLAlchemy: rows and marker are one transaction of one engine, and the marker's primary key refuses a replay.

It demands a database with transactions, both tables in it, and a connection that is not in autocommit.
"""

import os
from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, delete, insert, select
from sqlalchemy.exc import IntegrityError

tables = MetaData()
orders = Table("orders", tables, Column("id", Integer), Column("key", String(50)), Column("amount", Integer))
batches = Table(
    "batches",
    tables,
    Column("query", String(100), primary_key=True),
    Column("batch", Integer, primary_key=True, autoincrement=False),
)
Path("output").mkdir(exist_ok=True)
engine = create_engine(os.environ.get("DATABASE_URL", "sqlite:///output/rows.db"), connect_args={"timeout": 60})
tables.create_all(engine)


def write_batch(rows, query, batch):
    try:
        with engine.begin() as db:
            db.execute(insert(batches).values(query=query, batch=batch))
            db.execute(insert(orders), rows)
    except IntegrityError:
        if not is_marked(query, batch):  # another constraint was violated
            raise


def is_marked(query, batch):
    with engine.connect() as db:
        this = select(batches).where(batches.c.query == query, batches.c.batch == batch)
        return db.execute(this).first() is not None


def read():
    with engine.connect() as db:
        return [dict(row) for row in db.execute(select(orders)).mappings()]


def reset():
    with engine.begin() as db:
        db.execute(delete(orders))
        db.execute(delete(batches))
