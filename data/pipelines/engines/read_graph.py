"""What the nodes of a graph have appended, and how output and checkpointer are emptied; PGHOST names the server."""

import psycopg
from read_json import read
from read_json import reset as reset_files

__all__ = ["read", "reset"]


def reset():
    """Empties the output, and removes everything that the server holds."""
    reset_files()
    with psycopg.connect() as db:
        db.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
