"""One kill by hand, without labkit: a table that no process can open after a kill in `create_checkpoint`.

Needs deltalake, pyarrow and strace. The process is killed at the rename to `_last_checkpoint`, after the file of the
checkpoint is there. Exit code 1: the table cannot be opened; 0: it can.
"""

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

import pyarrow as pa
from deltalake import write_deltalake


def checkpoint(table, tracer=()):
    program = f"from deltalake import DeltaTable; DeltaTable({table!r}).create_checkpoint()"
    return subprocess.run([*tracer, sys.executable, "-c", program], capture_output=True, check=False).returncode


def main():
    print("deltalake", version("deltalake"))
    with tempfile.TemporaryDirectory() as folder:
        table = f"{folder}/orders"
        for number in range(12):
            write_deltalake(table, pa.table({"id": [number]}), mode="append")
            if number == 5:
                checkpoint(table)
        pointer = f"{table}/_delta_log/_last_checkpoint"
        kill = ["-P", f"{pointer}#1", "-e", "trace=rename", "-e", "inject=rename:signal=KILL"]
        print("first process: exit", checkpoint(table, ["strace", "-f", "-qq", "-o", f"{folder}/trace", *kill]))
        print("  ", sorted(name for name in os.listdir(f"{table}/_delta_log") if "checkpoint" in name))
        with open(pointer) as file:
            print("   _last_checkpoint:", file.read().strip())
        program = f"from deltalake import DeltaTable; print(len(DeltaTable({table!r}).to_pyarrow_table()), 'rows')"
        second = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        print("second process: exit", second.returncode)
        print("  ", *[line.strip() for line in (second.stdout + second.stderr).splitlines() if line.strip()][-3:])
    found = second.returncode != 0
    print("found: the table cannot be opened" if found else "not found: the table has all its rows")
    sys.exit(found)


if __name__ == "__main__":
    main()
