"""What a power cut may leave of an IcebergLocal table of ClickHouse, shown by hand and without labkit.

Needs chdb and strace. One process inserts a row and ends; another inserts a second row and ends, traced. If the trace
shows no fsync of the new metadata file, that file is cut to 0 bytes, since a power cut may leave it so. Exit code 1: no
row can be read afterwards; 0: the first row can.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

import chdb

CHILD = """
import sys
from chdb import session
engine = session.Session("store")
engine.query("set allow_insert_into_iceberg = 1")
for statement in sys.argv[1:]:
    print(str(engine.query(statement)).strip())
"""


def run(folder, *statements, tracer=()):
    command = [*tracer, sys.executable, "-c", CHILD, *statements]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def main():
    print("chdb", chdb.__version__, "with ClickHouse", str(chdb.query("select version()")).strip())
    with tempfile.TemporaryDirectory() as folder:
        table = f"{folder}/store/user_files/orders"
        create = f"create table orders (id Int64) engine = IcebergLocal('{table}')"
        run(folder, create, "insert into orders values (1)")
        tracer = ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync,sync,syncfs", "-o", f"{folder}/trace"]
        second = run(folder, "insert into orders values (2)", tracer=tracer)
        with open(f"{folder}/trace") as file:
            syncs = re.findall(r"sync\w*\(.*", file.read())
        of_table = [call for call in syncs if "/orders/" in call]
        print(f"second insert: exit {second.returncode}, {len(of_table)} calls of fsync for the table's files")
        newest = max(glob.glob(f"{table}/metadata/v*.metadata.json"))
        if any("metadata.json" in call for call in of_table):
            print("the metadata file was synced, so it stays")
        else:
            print("cut to 0 bytes:", os.path.relpath(newest, table))
            os.truncate(newest, 0)
        seen = run(folder, "select id from orders order by id")
        print("reader: exit", seen.returncode, seen.stdout.split(), *seen.stderr.strip().splitlines()[-1:])
        again = run(folder, "insert into orders values (3)", "select id from orders order by id")
        print("next insert: exit", again.returncode, again.stdout.split(), *again.stderr.strip().splitlines()[-1:])
    found = "1" not in seen.stdout.split()
    print("found: no row can be read" if found else "not found: the rows before can be read")
    sys.exit(found)


if __name__ == "__main__":
    main()
