"""One kill by hand, without labkit: dlt doubles rows although they are merged by a primary key.

Needs dlt[duckdb]. The table has a nested table. The first process is killed after DuckDB has committed the rows of one
of the two to the staging dataset and before dlt notes that this job is done. The second process resumes the load, and
loads these rows into the staging dataset once more. Exit code 1: rows are doubled; 0: they are not.
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
        if file_name.startswith(f"{sys.argv[2]}."):
            os.kill(os.getpid(), signal.SIGKILL)
        return note(self, load_id, file_name, *rest)

    setattr(PackageStorage, NOTE, killed)


@dlt.resource(name="orders", primary_key="id", write_disposition="merge")
def orders():
    yield [{"id": 1, "items": [{"n": 1}, {"n": 2}]}, {"id": 2, "items": [{"n": 3}]}]


def load(folder):
    dlt.config["runtime.dlthub_telemetry"] = False
    dlt.config["runtime.log_level"] = "CRITICAL"
    dlt.config["load.workers"] = 1  # one file after the other, so that the kill always leaves the same
    target = dlt.destinations.duckdb(f"{folder}/orders.duckdb")
    dlt.pipeline("orders", pipelines_dir=f"{folder}/work", destination=target, dataset_name="shop").run(orders)


def rows(folder, table, column):
    with duckdb.connect(f"{folder}/orders.duckdb") as database:
        return sorted(row[0] for row in database.execute(f"select {column} from shop.{table}").fetchall())


def main():
    if len(sys.argv) == 3:
        if sys.argv[2] != "nothing":
            kill_before_note()
        load(sys.argv[1])
        return
    print("dlt", version("dlt"), "with duckdb", version("duckdb"))
    doubled = []
    for table in ["orders__items", "orders"]:
        with tempfile.TemporaryDirectory() as folder:
            ended = []
            for killed_at in [table, "nothing"]:
                command = [sys.executable, __file__, folder, killed_at]
                ended.append(subprocess.run(command, capture_output=True, check=False).returncode)
            first = "SIGKILL" if ended[0] == -signal.SIGKILL else f"exit {ended[0]}"
            print(f"killed when the rows of {table} were in the staging dataset: {first}, then exit {ended[1]}")
            for name, values in [
                ("orders", rows(folder, "orders", "id")),
                ("items", rows(folder, "orders__items", "n")),
            ]:
                print(f"  {name}: {values}")
                if len(values) > len(set(values)):
                    doubled.append(name)
    print("found: doubled after a merge:" if doubled else "not found: every row is there once", *doubled)
    sys.exit(bool(doubled))


if __name__ == "__main__":
    main()
