"""Flink's JDBC sink into PostgreSQL. With the argument `key` the table has a primary key, so Flink upserts."""

import os
import sys

from flink_job import copy_orders

IS_KEYED = sys.argv[1:] == ["key"]
copy_orders(
    f"""'connector' = 'jdbc', 'url' = '{os.environ["JDBC_URL"]}', 'username' = '{os.environ["PGUSER"]}',
    'password' = '', 'table-name' = '{"keyed" if IS_KEYED else "orders"}'""",
    # Flink 2.3 wants ON CONFLICT of an insert whose keys it does not know to be unique.
    {"pipeline.jars": os.environ["FLINK_JARS"], "table.exec.sink.require-on-conflict": "false"},
    key=", PRIMARY KEY (id) NOT ENFORCED" if IS_KEYED else "",
)
