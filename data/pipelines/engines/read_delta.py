"""Prints what a reader other than Spark (delta-rs) finds in the Delta table, as JSON Lines."""

import json

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

try:
    rows = DeltaTable("output").to_pyarrow_table().to_pylist()
except TableNotFoundError:
    rows = []
for row in rows:
    print(json.dumps(row))
