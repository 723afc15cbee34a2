"""Brings back a copy of its database after a crash, and removes the database's log last. A reader often hides that."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

DB, BEFORE = Path("store/rows.db"), Path("store/before")


def opened(path):
    return closing(sqlite3.connect(path, isolation_level=None))


def copy(path, target):
    shutil.copyfile(path, f"{target}.new")
    os.replace(f"{target}.new", target)


if not DB.exists():
    with opened("store/new.db") as db:
        db.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER, key TEXT)")
        db.execute("CREATE TABLE IF NOT EXISTS done (part TEXT)")
        db.execute("PRAGMA journal_mode = WAL")
    os.replace("store/new.db", DB)
if BEFORE.exists():  # the last start died within a part
    copy(BEFORE, DB)
    BEFORE.unlink()
    # After a crash here, SQLite adds the transactions of the dead start to the copy, unless somebody has opened the
    # database since: this removes the log.
    Path(f"{DB}-wal").unlink(missing_ok=True)
for part in sorted(Path("input").iterdir()):
    with opened(DB) as db:
        if db.execute("SELECT 1 FROM done WHERE part = ?", (part.name,)).fetchall():
            continue
    copy(DB, BEFORE)
    with opened(DB) as db:
        with db:
            db.execute("BEGIN")
            db.executemany("INSERT INTO rows VALUES (?, ?)", map(str.split, part.read_text().splitlines()))
        db.execute("INSERT INTO done VALUES (?)", (part.name,))
    BEFORE.unlink()
