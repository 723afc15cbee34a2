"""PyIceberg with a catalog in SQLite: SQLAlchemy, Avro and Parquet, partly in a pool of threads."""

from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

catalog = SqlCatalog("lines", uri="sqlite:///catalog.db", warehouse=str(Path.cwd()))  # effect: catalog.db*
catalog.create_namespace("n")  # effect: catalog.db*
rows = pa.table({"id": [1, 2]})
table = catalog.create_table("n.t", rows.schema)  # effect: catalog.db* n n/t n/t/metadata n/t/metadata/*.json
table.append(rows)  # effect: catalog.db* n/t/data n/t/data/* n/t/metadata/*
