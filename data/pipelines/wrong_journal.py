"""Rows and the name of their part in one transaction, but each start removes the journal that a crash has left."""

import sqlite3
from pathlib import Path

Path("store/rows.db-journal").unlink(missing_ok=True)  # "the database is locked" is never seen again
db = sqlite3.connect("store/rows.db", timeout=60)
db.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER, key TEXT)")
db.execute("CREATE TABLE IF NOT EXISTS done (part TEXT)")
for part in sorted(Path("input").iterdir()):
    if db.execute("SELECT 1 FROM done WHERE part = ?", (part.name,)).fetchone():
        continue
    with db:
        for line in part.read_text().splitlines():
            db.execute("INSERT INTO rows VALUES (?, ?)", line.split())
        db.execute("INSERT INTO done VALUES (?)", (part.name,))
