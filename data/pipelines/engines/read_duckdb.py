"""Prints the rows of the table orders in a copy of the DuckDB file, since its writer locks the file."""

import json
import shutil
import tempfile
from pathlib import Path

import duckdb

with tempfile.TemporaryDirectory() as folder:
    for path in Path("output").glob("orders.duckdb*"):
        shutil.copy(path, folder)
    copy = Path(folder, "orders.duckdb")
    if copy.exists():
        with duckdb.connect(str(copy)) as db:
            tables = "SELECT table_schema FROM information_schema.tables WHERE table_name = 'orders'"
            found = db.execute(f"{tables} AND table_schema NOT LIKE '%_staging'")
            for (schema,) in found.fetchall():
                for order, key in db.execute(f"SELECT id, key FROM {schema}.orders ORDER BY ALL").fetchall():
                    print(json.dumps({"id": order, "key": key}))
