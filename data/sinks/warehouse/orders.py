"""Writes orders, and remembers each batch in a transaction of its own behind that of the rows."""

from .tables import STORE, connect


def write_orders(query, batch_id, rows):
    """The rows of one batch."""
    db = connect()
    if not db.execute("SELECT 1 FROM batches WHERE query = ? AND batch = ?", (query, batch_id)).fetchone():
        with db:
            db.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
        with db:
            db.execute("INSERT INTO batches VALUES (?, ?)", (query, batch_id))
    db.close()


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    write_orders(query, batch_id, [(row.id, row.key, row.amount) for row in df.collect()])


def read():
    """What everybody can see."""
    db = connect()
    rows = db.execute("SELECT id, key, amount FROM orders").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
