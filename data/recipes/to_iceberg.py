"""Iceberg (PyIceberg): query and batch are properties of the snapshot that makes the rows visible.

It demands that snapshots are kept for longer than a replay can take, and that a commit that conflicts is not retried.
"""

import shutil
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

FOLDER = Path("output").resolve()
NAME = "shop.orders"
SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.string()), ("amount", pa.int64())])


def catalog():
    FOLDER.mkdir(exist_ok=True)
    return SqlCatalog("recipes", uri=f"sqlite:///{FOLDER}/catalog.db", warehouse=f"file://{FOLDER}")


def write_batch(rows, query, batch):
    tables = catalog()
    tables.create_namespace_if_not_exists("shop")
    # A retry would append on top of another writer's snapshot without looking for this batch in it.
    table = tables.create_table_if_not_exists(NAME, SCHEMA, properties={"commit.retry.num-retries": "0"})
    written = [(snapshot.summary["query"], snapshot.summary["batch"]) for snapshot in table.snapshots()]
    if (query, str(batch)) not in written:
        properties = {"query": query, "batch": str(batch)}
        table.append(pa.Table.from_pylist(rows, SCHEMA), snapshot_properties=properties)


def read():
    if not (FOLDER / "catalog.db").exists():
        return []
    tables = catalog()
    return tables.load_table(NAME).scan().to_arrow().to_pylist() if tables.table_exists(NAME) else []


def reset():
    shutil.rmtree(FOLDER, ignore_errors=True)
