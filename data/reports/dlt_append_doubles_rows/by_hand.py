"""One kill by hand, without labkit: dlt loads a file of rows twice into DuckDB with the write disposition append.

Needs dlt[duckdb]. The first process is killed after DuckDB has committed the rows and before dlt notes that this job
is done. The second process resumes the load. Exit code 1: rows are doubled; 0: they are not.
"""

import os
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import version

import dlt
import duckdb
from dlt.common.storages.load_package import PackageStorage

# 1.24 and later write a marker right after the commit; before that, the job file was moved at once.
NOTE = "save_pending_transition" if hasattr(PackageStorage, "save_pending_transition") else "complete_job"


def kill_before_note():
    note = getattr(PackageStorage, NOTE)

    def killed(self, load_id, file_name, *rest):
        if file_name.startswith("orders."):
            os.kill(os.getpid(), signal.SIGKILL)
        return note(self, load_id, file_name, *rest)

    setattr(PackageStorage, NOTE, killed)


@dlt.resource(name="orders", primary_key="id", write_disposition="append")
def orders(ids=dlt.sources.incremental("id")):  # noqa: ARG001, B008 - as dlt wants it
    yield [{"id": 1}, {"id": 2}, {"id": 3}]


def load(folder):
    dlt.config["runtime.dlthub_telemetry"] = False
    dlt.config["runtime.log_level"] = "CRITICAL"
    target = dlt.destinations.duckdb(f"{folder}/orders.duckdb")
    dlt.pipeline("orders", pipelines_dir=f"{folder}/work", destination=target, dataset_name="shop").run(orders)


def rows(folder):
    with duckdb.connect(f"{folder}/orders.duckdb") as database:
        return sorted(row[0] for row in database.execute("select id from shop.orders").fetchall())


def main():
    if len(sys.argv) == 3:
        if sys.argv[2] == "kill":
            kill_before_note()
        load(sys.argv[1])
        return
    print("dlt", version("dlt"), "with duckdb", version("duckdb"))
    with tempfile.TemporaryDirectory() as folder:
        for number, what in enumerate(["kill", "resume", "run again"], 1):
            command = [sys.executable, __file__, folder, what]
            done = subprocess.run(command, capture_output=True, check=False)
            ended = "SIGKILL" if done.returncode == -signal.SIGKILL else f"exit {done.returncode}"
            print(f"process {number} ({what}): {ended}, ids in DuckDB: {rows(folder)}")
        found = len(rows(folder)) > len(set(rows(folder)))
    print("found: rows are doubled" if found else "not found: every row is there once")
    sys.exit(found)


if __name__ == "__main__":
    main()
