"""One kill by hand, without labkit: a DuckDB database that cannot be opened after a kill.

Needs duckdb. A process adds a column whose default is a function, commits, and is killed before the next checkpoint.
Exit code 1: the database cannot be opened or lacks rows; 0: it has everything that was committed.
"""

import subprocess
import sys
import tempfile

import duckdb

BEFORE = "create sequence numbers; create table orders(id int); insert into orders values (1); checkpoint"
STEPS = {
    "add a column with a constant default": "alter table orders add column n bigint default 7",
    "add a column with default nextval": "alter table orders add column n bigint default nextval('numbers')",
    "add a column with default random": "alter table orders add column n double default random()",
}
CHILD = """
import os, signal, sys, duckdb
database = duckdb.connect(sys.argv[1])
for statement in sys.argv[2:]:
    database.execute(statement)
os.kill(os.getpid(), signal.SIGKILL)
"""
READER = "import sys, duckdb; print(duckdb.connect(sys.argv[1]).execute('from orders').fetchall())"


def main():
    print("duckdb", duckdb.__version__)
    stuck = 0
    for name, statement in STEPS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/orders.duckdb"
            writer = [sys.executable, "-c", CHILD, path, BEFORE, statement, "insert into orders(id) values (2)"]
            killed = subprocess.run(writer, check=False).returncode
            reader = [sys.executable, "-c", READER, path]
            seen = subprocess.run(reader, capture_output=True, text=True, check=False)
            shown = [line for line in seen.stderr.splitlines() if "Error: " in line] or [seen.stdout.strip()]
            print(f"{name}: exit {killed}, then exit {seen.returncode}\n  ", shown[0].replace(folder, "..."))
            stuck += seen.returncode != 0 or seen.stdout.count("(") != 2
    print("found: the database cannot be opened" if stuck else "not found: every committed row is there")
    sys.exit(stuck > 0)


if __name__ == "__main__":
    main()
