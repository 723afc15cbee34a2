"""HTTP: the Idempotency-Key is made of query and batch, and the service stores rows and key in one transaction.

It demands a service that remembers keys for longer than a replay can take; service.py is a small one.
"""

import json
import os
from urllib.request import Request, urlopen

SERVICE = os.environ.get("SERVICE", "http://localhost:8080")


def call(method, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{SERVICE}/orders", data, headers, method=method)
    with urlopen(request, timeout=30) as answer:  # raises for every answer that is no success
        return json.load(answer)


def write_batch(rows, query, batch):
    call("POST", rows, **{"Content-Type": "application/json", "Idempotency-Key": f"{query}/{batch}"})


def read():
    return call("GET")


def reset():
    call("DELETE")
