"""DuckDB: a transaction, and a COPY, both written by native threads."""

import duckdb

database = duckdb.connect("rows.duckdb")  # effect: rows.duckdb*
database.execute("CREATE TABLE rows (id INTEGER)")  # effect: rows.duckdb*
database.begin()
database.execute("INSERT INTO rows VALUES (1)")  # effect: rows.duckdb*
database.commit()  # effect: rows.duckdb*
database.execute("COPY rows TO 'copy.parquet'")  # effect: *copy.parquet
database.close()  # effect: rows.duckdb*
