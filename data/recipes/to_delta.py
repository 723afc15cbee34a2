"""Delta Lake (delta-rs): the commit of the rows also records the transaction identifier (query, batch).

It demands that nobody else writes with this query's name, and that `delta.setTransactionRetentionDuration` is unset.
"""

import shutil

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

PATH = "output/orders"
SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.string()), ("amount", pa.int64())])


def write_batch(rows, query, batch):
    if last_batch(query) >= batch:
        return
    identifier = Transaction(query, batch)
    write_deltalake(
        PATH,
        pa.Table.from_pylist(rows, SCHEMA),
        mode="append",
        # Checking is the writer's task: Delta records the identifier, and does not refuse it a second time.
        commit_properties=CommitProperties(app_transactions=[identifier]),
    )


def last_batch(query):
    if not DeltaTable.is_deltatable(PATH):
        return -1
    version = DeltaTable(PATH).transaction_version(query)
    return -1 if version is None else version


def read():
    return DeltaTable(PATH).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(PATH) else []


def reset():
    shutil.rmtree(PATH, ignore_errors=True)
