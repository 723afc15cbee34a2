"""Quix Streams copies orders from a topic to another one (`kafka`), or into a CSV file (`csv`) or a table of PostgreSQL
(`postgres`). The second argument is the processing guarantee, as Quix Streams writes it. A checkpoint comes after every
third record.
"""

import os
import sys
from pathlib import Path

from quixstreams import Application
from quixstreams.sinks.community.postgresql import PostgreSQLSink
from quixstreams.sinks.core.csv import CSVSink

OUTPUT, GUARANTEE = sys.argv[1:]

app = Application(
    broker_address=os.environ["KAFKA"],
    consumer_group="copy",
    processing_guarantee=GUARANTEE,
    auto_offset_reset="earliest",
    commit_every=3,
    loglevel="ERROR",
    state_dir="checkpoint",
    consumer_extra_config={"session.timeout.ms": 6000},
)
orders = app.dataframe(app.topic("orders", value_deserializer="json"))
if OUTPUT == "kafka":
    orders.to_topic(app.topic("orders-out", value_serializer="json"))
elif OUTPUT == "csv":
    Path("output").mkdir(exist_ok=True)
    orders.sink(CSVSink("output/orders.csv"))
else:
    server = {"host": os.environ["PGHOST"], "dbname": os.environ["PGDATABASE"], "user": os.environ["PGUSER"]}
    orders.sink(PostgreSQLSink(**server, port=5432, password="", table_name="orders"))
app.run(timeout=5)
