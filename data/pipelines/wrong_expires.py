"""Rows and the name of their part in one transaction, and every name is forgotten after five seconds."""

import sqlite3
import time
from pathlib import Path

db = sqlite3.connect("store/rows.db")
db.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER, key TEXT)")
db.execute("CREATE TABLE IF NOT EXISTS done (part TEXT, until REAL)")
for part in sorted(Path("input").iterdir()):
    if db.execute("SELECT 1 FROM done WHERE part = ? AND until > ?", (part.name, time.time())).fetchone():
        continue
    with db:
        for line in part.read_text().splitlines():
            db.execute("INSERT INTO rows VALUES (?, ?)", line.split())
        db.execute("INSERT INTO done VALUES (?, ?)", (part.name, time.time() + 5))
