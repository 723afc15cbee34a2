"""What a sink of Kafka Connect has written, whichever it is, and how everything is emptied and filled anew."""

import json
import os
import shutil
from pathlib import Path

import psycopg
import read_quix


def read():
    """The lines of the file, or those in the tables of PostgreSQL if there is a server, or none."""
    path = Path("output/orders.jsonl")
    if path.exists():
        return [json.loads(line) for line in path.read_text().splitlines()]
    if "PGHOST" not in os.environ:
        return []
    with psycopg.connect() as db:
        there = db.execute("SELECT FROM pg_tables WHERE tablename = 'orders'").fetchall()
        return [json.loads(line) for (line,) in db.execute("SELECT line FROM orders")] if there else []


def reset():
    """Empties output, table and checkpoint, and makes the topics anew."""
    shutil.rmtree("output", ignore_errors=True)
    if "PGHOST" in os.environ:
        with psycopg.connect() as db:
            db.execute("DROP TABLE IF EXISTS orders")
    read_quix.reset()
