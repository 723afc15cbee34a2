"""Rows and the name of their part in one transaction."""

import sqlite3
from pathlib import Path

# A second instance waits this long for the lock of the first one.
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
