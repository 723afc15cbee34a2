"""One kill by hand, without labkit: what a power cut may leave of a new database of Turso and of SQLite.

Needs pyturso and strace. A process creates a database, commits five rows and is killed. Where the trace shows no fsync
of the database file, that file is cut to 0 bytes, since a power cut may leave it so; the WAL was synced and stays.
Exit code 1: Turso lost the rows; 0: it did not. SQLite runs beside it, for comparison.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import version

CHILD = """
import importlib, os, signal, sys
database = importlib.import_module(sys.argv[1]).connect(sys.argv[2])
database.execute("pragma journal_mode = wal")
database.execute("pragma synchronous = full")
database.execute("create table orders (id integer primary key)")
for number in range(5):
    database.execute("insert into orders values (?)", (number,))
    database.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""
READER = """
import importlib, sys
database = importlib.import_module(sys.argv[1]).connect(sys.argv[2])
print(database.execute("pragma integrity_check").fetchone()[0], end=", ")
print(database.execute("select count(*) from orders").fetchone()[0], "rows")
"""


def sizes(folder):
    return {name: os.path.getsize(f"{folder}/{name}") for name in sorted(os.listdir(folder)) if "trace" not in name}


def synced(trace, path):
    """Tell whether the process has called fsync or fdatasync on this file."""
    with open(trace) as file:
        calls = file.read()
    return bool(re.search(r"f(data)?sync\(\d+<" + re.escape(path) + r">\)\s+= 0", calls))


def lost(module, cut_anyway=False):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/orders.db"
        strace = ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync", "-o", f"{folder}/trace"]
        writer = subprocess.run([*strace, sys.executable, "-c", CHILD, module, path], check=False)
        killed = "SIGKILL" if writer.returncode == -signal.SIGKILL else f"exit {writer.returncode}"
        whole = synced(f"{folder}/trace", path)
        print(f"{module}: {killed}, orders.db {'was synced' if whole else 'was never synced'}", end="")
        if cut_anyway or not whole:
            os.truncate(path, 0)
            print(", cut to 0 bytes although a power cut would not do it" if whole else ", cut to 0 bytes", end="")
        print("\n   before:", sizes(folder))
        reader = [sys.executable, "-c", READER, module, path]
        seen = subprocess.run(reader, capture_output=True, text=True, check=False)
        print("   integrity_check:", seen.stdout.strip(), *seen.stderr.strip().splitlines()[-1:])
        print("   after:", sizes(folder))
        return not seen.stdout.endswith("5 rows\n")


def main():
    print("pyturso", version("pyturso"))
    found = lost("turso")
    lost("sqlite3")
    lost("sqlite3", cut_anyway=True)
    print("found: Turso loses committed rows" if found else "not found: Turso has all committed rows")
    sys.exit(found)


if __name__ == "__main__":
    main()
