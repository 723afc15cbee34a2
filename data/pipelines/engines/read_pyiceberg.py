"""Prints the rows of the Iceberg table that PyIceberg keeps, with a catalog in SQLite, as JSON Lines."""

import json
import shutil
import tempfile
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog

place = Path("output").resolve()
if (place / "catalog.db").exists():
    with tempfile.TemporaryDirectory() as folder:
        for path in place.glob("catalog.db*"):
            shutil.copy(path, folder)
        catalog = SqlCatalog("orders", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{place}")
        if catalog.table_exists("shop.orders"):
            for row in catalog.load_table("shop.orders").scan().to_arrow().to_pylist():
                print(json.dumps(row))
