"""The latest row of each key; after a crash it is built anew from the first one, and readers see it go back."""

import sqlite3
from pathlib import Path

db = sqlite3.connect("store/rows.db")
db.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER, key TEXT PRIMARY KEY)")
for part in sorted(Path("input").iterdir()):
    with db:
        for line in part.read_text().splitlines():
            db.execute("INSERT OR REPLACE INTO rows VALUES (?, ?)", line.split())
