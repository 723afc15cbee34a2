"""Quix Streams copies orders from a topic to another topic (`kafka`) or into a CSV file (`csv`).

The second argument is the processing guarantee, as Quix Streams writes it, the third one, if there is one, the
transactional.id. A checkpoint comes after every third record.
"""

import os
import sys
from pathlib import Path

from quixstreams import Application
from quixstreams.sinks.core.csv import CSVSink

OUTPUT, GUARANTEE, *ID = sys.argv[1:]
PATIENCE_SECONDS = 25  # in which the broker aborts the transaction that a killed instance has left open

app = Application(
    broker_address=os.environ["KAFKA"],
    consumer_group="copy",
    processing_guarantee=GUARANTEE,
    auto_offset_reset="earliest",
    commit_every=3,
    loglevel="ERROR",
    state_dir="checkpoint",
    consumer_extra_config={"session.timeout.ms": 6000},
    producer_extra_config={"transaction.timeout.ms": 10_000} | ({"transactional.id": ID[0]} if ID else {}),
)
orders = app.dataframe(app.topic("orders", value_deserializer="json"))
if OUTPUT == "kafka":
    orders.to_topic(app.topic("orders-out", value_serializer="json"))
else:
    Path("output").mkdir(exist_ok=True)
    orders.sink(CSVSink("output/orders.csv"))
app.run(timeout=PATIENCE_SECONDS if OUTPUT == "kafka" and not ID else 5)
