"""Prints what a reader other than Spark (PyIceberg) finds in the Iceberg table, as JSON Lines."""

import json
from pathlib import Path

from pyiceberg.table import StaticTable

versions = {int(path.name[1:].split(".")[0]): path for path in Path("output/orders/metadata").glob("v*.metadata.json")}
rows = StaticTable.from_metadata(str(versions[max(versions)])).scan().to_arrow().to_pylist() if versions else []
for row in rows:
    print(json.dumps(row))
