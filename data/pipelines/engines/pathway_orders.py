"""Pathway reads a folder of orders, with persistence, and writes the new ones to PostgreSQL; PGHOST names the server.

A file of orders arrives each day, and Pathway is started then.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pathway as pw


class Order(pw.Schema):
    id: int
    key: str


def day():
    orders = pw.io.jsonlines.read("inbox", schema=Order, mode="static", name="orders")
    server = {
        "host": os.environ["PGHOST"],
        "port": "5432",
        "dbname": os.environ["PGDATABASE"],
        "user": os.environ["PGUSER"],
    }
    pw.io.postgres.write(orders, server, "orders", init_mode="create_if_not_exists")
    progress = pw.persistence.Config(pw.persistence.Backend.filesystem("checkpoint"))
    pw.run(persistence_config=progress, monitoring_level=pw.MonitoringLevel.NONE)


if sys.argv[1:] == ["day"]:
    day()
else:
    Path("inbox").mkdir(exist_ok=True)
    for path in sorted((Path(__file__).parent / "orders").iterdir()):
        if not Path("inbox", path.name).exists():
            shutil.copy(path, f"inbox/.{path.name}")
            Path(f"inbox/.{path.name}").rename(f"inbox/{path.name}")
        subprocess.run([sys.executable, __file__, "day"], check=True)
