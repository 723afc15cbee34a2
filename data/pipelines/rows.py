"""How anybody else reads what the pipelines of this folder wrote, how they are fed, and how all of it is emptied."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

PARTS = {
    "part-1": ["1 apple", "2 pear", "3 plum"],
    "part-2": ["4 apple", "5 pear", "6 plum"],
    "part-3": ["7 apple", "8 pear", "9 plum"],
}


def row(line):
    number, fruit = line.split()
    return {"id": int(number), "key": fruit}


# Thirty parts instead of three, fed by `python rows.py`; one of them has two rows.
THIRTY = {f"part-{n:02}": [f"{2 * n} apple", f"{2 * n + 1} melon"][: 1 + (n == 17)] for n in range(1, 31)}


def lines(paths):
    # A line that is not finished is no row.
    return [row(line) for path in paths for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def expected():
    return [row(line) for part in PARTS.values() for line in part]


def thirty():
    return [row(line) for part in THIRTY.values() for line in part]


def counts():
    return [("apple", 3), ("pear", 3), ("plum", 3)]


def read_all():
    return lines(Path("store").glob("all.txt"))


def read_parts():
    return lines(sorted(Path("store").glob("part-*")))


def read_newest():
    copies = sorted(Path("store").glob("copy-?"), key=lambda copy: copy.stat().st_mtime_ns)
    return lines(copies[-1:])


def read_attempts():
    return sorted(lines(Path("store").glob("rows-*")), key=lambda each: each["id"])


def read_named():
    manifest = Path("store/manifest")
    named = json.loads(manifest.read_text() or "[0]")[0] if manifest.exists() else 0
    return lines(Path("store").glob(f"data-{named}"))


def read_manifest():
    manifest = Path("store/manifest")
    listed = manifest.read_text().split() if manifest.exists() else []
    return lines([Path("store", name) for name in listed])


def read_received():
    received = Path("store/received")
    kept = received.read_text().splitlines() if received.exists() else []
    return [row(line.partition("\t")[2]) for line in kept]


def read_table():
    if not Path("store/rows.db").exists():
        return []
    with closing(sqlite3.connect("store/rows.db", timeout=1)) as db:
        found = db.execute("SELECT name FROM sqlite_master WHERE name = 'rows'")
        if not found.fetchall():
            return []
        db.row_factory = sqlite3.Row
        return [dict(each) for each in db.execute("SELECT id, key FROM rows")]


def read_json():
    document = Path("store/rows.json")
    return json.loads(document.read_text()) if document.exists() else []


def read_counts():
    totals = Path("store/totals")
    text = totals.read_text() if totals.exists() else ""
    return [(line.split()[0], int(line.split()[1])) for line in text.splitlines()]


def fill(parts):
    shutil.rmtree("input", ignore_errors=True)
    Path("input").mkdir()
    for name, part in parts.items():
        Path("input", name).write_text("".join(f"{line}\n" for line in part))


def reset():
    for name in ("checkpoint", "store"):
        shutil.rmtree(name, ignore_errors=True)
    Path("store").mkdir()
    fill(PARTS)


if __name__ == "__main__":
    fill(THIRTY)
