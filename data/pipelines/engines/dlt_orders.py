"""dlt loads one file of orders a day into DuckDB, incrementally; the argument is the write disposition."""

import json
import sys
from pathlib import Path

import dlt

DISPOSITION = sys.argv[1]
dlt.config["runtime.dlthub_telemetry"] = False
dlt.config["runtime.log_level"] = "CRITICAL"


def load(path):
    @dlt.resource(name="orders", primary_key="id", write_disposition=DISPOSITION)
    def orders(ids=dlt.sources.incremental("id")):  # noqa: B008 - as dlt wants it
        yield [json.loads(line) for line in path.read_text().splitlines()]

    pipeline.run(orders)


Path("output").mkdir(exist_ok=True)
pipeline = dlt.pipeline(
    "orders",
    pipelines_dir="checkpoint",
    destination=dlt.destinations.duckdb("output/orders.duckdb"),
    dataset_name="shop",
)
for path in sorted((Path(__file__).parent / "orders").iterdir()):
    load(path)
