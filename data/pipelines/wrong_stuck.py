"""A primary key, and no answer to rows that come again."""

import sqlite3
from pathlib import Path

db = sqlite3.connect("store/rows.db")
db.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, key TEXT)")
for part in sorted(Path("input").iterdir()):
    with db:
        for line in part.read_text().splitlines():
            db.execute("INSERT INTO rows VALUES (?, ?)", line.split())
    part.unlink()
