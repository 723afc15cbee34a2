"""Sinks as texts, for tests that write them into files."""

APPEND = """
import json, shutil
from pathlib import Path
STORE = Path("rows.jsonl")
def sink(df, batch):
    rows = [row.asDict() for row in df.collect()]
    with STORE.open("a") as file:
        file.write("".join(json.dumps(row) + "\\n" for row in rows))
def read():
    return [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []
def reset():
    STORE.unlink(missing_ok=True)
"""
