"""PostgreSQL, two-phase commit, log-then-commit: a call prepares a batch, and commits/N is what decides it.

A prepared batch is committed when the engine is known to have written commits/N: by its listener, by the next call, or
by `recover`, which a job calls before it starts the query. Needs max_prepared_transactions > 0.
"""

import json
import os
from pathlib import Path
from threading import Lock

import psycopg
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

SERVER = os.environ.get("SINK_POSTGRES", "dbname=postgres")
TABLE = "CREATE TABLE IF NOT EXISTS crashtest_orders (id bigint, key text, amount bigint)"
PREPARED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND gid LIKE %s ORDER BY prepared"
INSERT = "INSERT INTO crashtest_orders VALUES (%s, %s, %s)"

finishing = Lock()
"""The engine calls its listener in a thread of its own, so it may come while the next call commits the same batch."""


def connect():
    """A connection on which every statement is a transaction, unless it says BEGIN."""
    db = psycopg.connect(SERVER, autocommit=True, options="-c lock_timeout=5s -c client_min_messages=warning")
    db.execute(TABLE)
    return db


def finish(db, query, decided, *, abort):
    """Commits what was decided; what was not is aborted if nobody can be about to decide it."""
    with finishing:
        for (gid,) in db.execute(PREPARED, (f"orders-{query}-%",)).fetchall():
            if int(gid.rpartition("-")[2]) <= decided:
                db.execute(f"COMMIT PREPARED '{gid}'")
            elif abort:
                db.execute(f"ROLLBACK PREPARED '{gid}'")


class Decided(StreamingQueryListener):
    """Hears that the engine has finished a batch."""

    def onQueryStarted(self, event):
        """Nothing is decided yet."""

    def onQueryProgress(self, event):
        """commits/N is there."""
        with connect() as db:
            finish(db, event.progress.id, event.progress.batchId, abort=False)

    def onQueryTerminated(self, event):
        """Nothing more is decided."""


listener = Decided()
listening = []


def write_batch(df, batch_id):
    """A foreachBatch function. That it is called for batch N says that commits/N-1 is there."""
    if not listening:
        # The batch comes with a session of its own, whose listeners do not hear of the query.
        listening.append(SparkSession.builder.getOrCreate().streams.addListener(listener))
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [(row.id, row.key, row.amount) for row in df.collect()]
    with connect() as db:
        finish(db, query, batch_id - 1, abort=True)
        db.execute("BEGIN")
        db.cursor().executemany(INSERT, rows)
        db.execute(f"PREPARE TRANSACTION 'orders-{query}-{batch_id}'")


def recover(checkpoint):
    """What an earlier driver of this checkpoint left: called before the query starts."""
    folder = Path(checkpoint)
    if not (folder / "metadata").exists():
        return
    query = json.loads((folder / "metadata").read_text())["id"]
    commits = [int(path.name) for path in (folder / "commits").glob("[0-9]*")]
    with connect() as db:
        finish(db, query, max(commits, default=-1), abort=True)


def read():
    """What everybody can see."""
    with connect() as db:
        return db.execute("SELECT id, key, amount FROM crashtest_orders").fetchall()


def reset():
    """Empties the store between two runs of a test."""
    with connect() as db:
        for (gid,) in db.execute(PREPARED, ("orders-%",)).fetchall():
            db.execute(f"ROLLBACK PREPARED '{gid}'")
        db.execute("TRUNCATE crashtest_orders")
