"""PostgreSQL by coroutines: rows and marker in one transaction."""

import asyncio
import os

import psycopg

SERVER = os.environ.get("SINK_POSTGRES", "dbname=postgres")
TABLES = (
    "CREATE TABLE IF NOT EXISTS crashtest_rows (id bigint, key text, amount bigint)",
    "CREATE TABLE IF NOT EXISTS crashtest_batches (query text, batch int, PRIMARY KEY (query, batch))",
)
MARKED = "SELECT 1 FROM crashtest_batches WHERE query = %s AND batch = %s"


def connect():
    """A connection to a store that has its tables."""
    db = psycopg.connect(SERVER, autocommit=True, options="-c client_min_messages=warning")
    if db.execute("SELECT to_regclass('crashtest_batches')").fetchone() == (None,):
        for table in TABLES:
            db.execute(table)
    return db


async def put(rows, query, batch_id):
    """One batch."""
    async with await psycopg.AsyncConnection.connect(SERVER, autocommit=True) as db:
        marked = await db.execute(MARKED, (query, batch_id))
        if await marked.fetchone():
            return
        async with db.transaction():
            await db.cursor().executemany("INSERT INTO crashtest_rows VALUES (%s, %s, %s)", rows)
            await db.execute("INSERT INTO crashtest_batches VALUES (%s, %s)", (query, batch_id))


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    connect().close()
    asyncio.run(put([(row.id, row.key, row.amount) for row in df.collect()], query, batch_id))


def read():
    """What everybody can see."""
    with connect() as db:
        return db.execute("SELECT id, key, amount FROM crashtest_rows").fetchall()


def reset():
    """Empties the store between two runs of a test."""
    with connect() as db:
        db.execute("TRUNCATE crashtest_rows, crashtest_batches")
