"""What two tables of PostgreSQL hold, only one of which has a key, and how they are made anew; PGHOST is the server."""

import psycopg
import read_postgres
from psycopg.rows import dict_row


def read():
    """The rows of both tables."""
    with psycopg.connect(row_factory=dict_row) as db:
        return db.execute("SELECT id, key FROM orders UNION ALL SELECT id, key FROM keyed").fetchall()


def reset():
    """Empties tables, input and checkpoint."""
    read_postgres.reset()
    with psycopg.connect() as db:
        db.execute("CREATE TABLE orders (id INT, key TEXT)")
        db.execute("DROP TABLE IF EXISTS keyed")
        db.execute("CREATE TABLE keyed (id INT PRIMARY KEY, key TEXT)")
