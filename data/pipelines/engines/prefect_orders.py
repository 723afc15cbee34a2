"""A Prefect flow, each task of which appends a file of orders; their results are kept, so a restart reuses them.

The argument is the cache policy of the tasks. Prefect starts a server for each run of the flow, which forgets it.
"""

import os
import sys
from pathlib import Path

os.environ |= {
    "PREFECT_HOME": str(Path("checkpoint").resolve()),
    "PREFECT_API_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:///:memory:",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
}

from prefect import cache_policies, flow, task

POLICY = {"inputs": cache_policies.INPUTS, "default": cache_policies.DEFAULT}[sys.argv[1]]
ORDERS = sorted((Path(__file__).parent / "orders").iterdir())


@task(persist_result=True, cache_policy=POLICY, retries=2)
def load(name):
    with open("output/orders.jsonl", "ab") as output:
        output.write((ORDERS[0].parent / name).read_bytes())
        output.flush()
        os.fsync(output.fileno())
    return name


@flow
def load_all():
    for path in ORDERS:
        load(path.name)


Path("output").mkdir(exist_ok=True)
load_all()
