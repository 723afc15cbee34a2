"""Pipelines as strangers write them, each with its verdict written down before its first run; half of them
are wrong.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from choosing import variant_but

from labkit.core.judge import Outcome
from labkit.crashtest.blackbox.campaign import crash_test_pipeline

pytestmark = pytest.mark.slow


class Program(NamedTuple):
    """A pipeline, the guarantee that was predicted of it, and the axes that must be violated."""

    text: str
    guarantee: str
    violated: frozenset[str] = frozenset()


LINES = """
import csv, json, os, sqlite3, sys, time
rows = open("in.txt").read().splitlines()
"""

TABLES = """
db = sqlite3.connect("store/a.db", isolation_level=None)
db.execute("PRAGMA journal_mode={mode}")
db.execute("ATTACH 'store/b.db' AS b")
db.execute("PRAGMA b.journal_mode={mode}")
db.execute("CREATE TABLE IF NOT EXISTS main.o(r)")
db.execute("CREATE TABLE IF NOT EXISTS b.p(n)")
done = db.execute("SELECT count(*) FROM b.p").fetchone()[0]
for n, row in enumerate(rows[done:], done):
    db.execute("BEGIN")
    db.execute("INSERT INTO main.o VALUES (?)", (row,))
    db.execute("INSERT INTO b.p VALUES (?)", (n,))
    db.execute("COMMIT")
"""

WAL = """
db = sqlite3.connect("store/a.db", isolation_level={level})
db.execute("PRAGMA journal_mode=wal")
db.execute("CREATE TABLE IF NOT EXISTS o(r)")
db.execute("CREATE TABLE IF NOT EXISTS p(n)")
done = db.execute("SELECT count(*) FROM p").fetchone()[0]
for n, row in enumerate(rows[done:], done):
    with db:
        db.execute("INSERT INTO o VALUES (?)", (row,))
        db.execute("INSERT INTO p VALUES (?)", (n,))
"""

PROGRAMS = {
    "rows and position in one transaction of SQLite's log": Program(WAL.format(level="''"), "exactly-once"),
    "the same, but every statement commits by itself": Program(
        WAL.format(level="None"), "at-least-once", frozenset({"duplicate"})
    ),
    "two databases in one transaction, by SQLite's super-journal": Program(
        TABLES.format(mode="delete"), "exactly-once"
    ),
    "two databases in one transaction, each with a log of its own": Program(
        TABLES.format(mode="wal"), "at-least-once", frozenset({"duplicate"})
    ),
    "rows and position in one file, replaced": Program(
        """
path = "store/state.json"
state = json.load(open(path)) if os.path.exists(path) else {"n": 0, "rows": []}
while state["n"] < len(rows):
    state["rows"].append(rows[state["n"]])
    state["n"] += 1
    with open(path + ".new", "w") as new:
        json.dump(state, new)
        new.flush()
        os.fsync(new.fileno())
    os.replace(path + ".new", path)
""",
        "exactly-once",
    ),
    "the position is replaced first, then the row is appended": Program(
        """
n = int(open("store/n").read()) if os.path.exists("store/n") else 0
with open("store/out.csv", "a", newline="") as out:
    writer = csv.writer(out)
    for row in rows[n:]:
        n += 1
        open("store/n.new", "w").write(str(n))
        os.replace("store/n.new", "store/n")
        writer.writerow([row])
        out.flush()
""",
        "at-most-once",
        frozenset({"lost"}),
    ),
    "rows that are there are read back and left out": Program(
        """
path = "store/out.csv"
lines = open(path).read() if os.path.exists(path) else ""
whole = lines[: lines.rfind("\\n") + 1]
seen = set(whole.split())
with open(path, "a", newline="") as out:
    out.truncate(len(whole))
    for row in rows:
        if row not in seen:
            out.write(row + "\\n")
            out.flush()
""",
        "exactly-once",
    ),
    "rows are left out that this process has seen": Program(
        """
seen = set()
with open("store/out.csv", "a") as out:
    for row in rows:
        if row not in seen:
            seen.add(row)
            out.write(row + "\\n")
            out.flush()
""",
        "at-least-once",
        frozenset({"duplicate"}),
    ),
}

READER = """
import csv, json, os, shutil, sqlite3
from contextlib import closing
def reset():
    shutil.rmtree("store", ignore_errors=True)
    os.mkdir("store")
    with open("in.txt", "w") as file:
        file.write("".join(f"row{n}\\n" for n in range(4)))
def read():
    found = []
    if os.path.exists("store/a.db"):
        with closing(sqlite3.connect("store/a.db", timeout=1)) as db:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'o'").fetchall():
                found = [{"r": r} for (r,) in db.execute("SELECT r FROM o")]
    if os.path.exists("store/state.json"):
        found = [{"r": r} for r in json.load(open("store/state.json"))["rows"]]
    if os.path.exists("store/out.csv"):
        found = [{"r": r} for (r,) in csv.reader(open("store/out.csv"))]
    return found
def due():
    return [{"r": f"row{n}"} for n in range(4)]
"""


IN_SHORT = ("rows that are there are read back and left out",)
"""A wrong pipeline that was once called exactly-once; the others are variants."""


@pytest.fixture(autouse=True)
def _place(watched_calls: None, nothing_is_left: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rd.py").write_text(READER, encoding="utf-8")


@pytest.mark.parametrize("name", variant_but(IN_SHORT, PROGRAMS))
def test_a_stranger_is_told_what_was_predicted(name: str) -> None:
    program = PROGRAMS[name]
    Path("job.py").write_text(LINES + program.text, encoding="utf-8")
    report = crash_test_pipeline(
        f"{sys.executable} job.py", reader="rd.py:read", expected="rd.py:due", quick=True, seconds=900
    )
    print(report.text())
    axes = report.summary.axes
    assert {each.id: each.unknown for each in report.summary.unknown()} == {}
    assert report.summary.guarantee == program.guarantee
    found = {axis for axis, held in axes.items() if held is Outcome.VIOLATED}
    assert found == program.violated
