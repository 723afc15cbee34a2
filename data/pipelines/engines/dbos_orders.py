"""A durable workflow of DBOS whose three steps each write a file of orders.

The argument says how: a `step` appends to a file, a `transaction` inserts into a table of the application's SQLite,
where DBOS notes the step.
"""

import json
import os
import sys
from pathlib import Path

import sqlalchemy as sa
from dbos import DBOS, SetWorkflowID, SQLAlchemyDatasource

ORDERS = sorted((Path(__file__).parent / "orders").iterdir())
for folder in ("output", "checkpoint"):
    Path(folder).mkdir(exist_ok=True)
DBOS(
    config={
        "name": "orders",
        "application_version": "1",
        "executor_id": "local",
        "system_database_url": "sqlite:///checkpoint/dbos.db",
        "run_admin_server": False,
        "log_level": "CRITICAL",
    }
)


@DBOS.step()
def step(path):
    with open("output/orders.jsonl", "ab") as output:
        output.write(Path(path).read_bytes())
        output.flush()
        os.fsync(output.fileno())


WRITE = step
if sys.argv[1] == "transaction":
    store = SQLAlchemyDatasource.create("sqlite:///output/orders.db")

    @store.transaction()
    def transaction(path):
        session = store.sql_session()
        session.execute(sa.text("CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT)"))
        for line in Path(path).read_text().splitlines():
            session.execute(sa.text("INSERT INTO orders VALUES (:id, :key)"), json.loads(line))

    WRITE = transaction


@DBOS.workflow()
def load(paths):
    for path in paths:
        WRITE(path)


DBOS.launch()
with SetWorkflowID("orders"):
    load([str(path) for path in ORDERS])
DBOS.destroy()
