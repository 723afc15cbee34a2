"""Redis: MULTI and EXEC write rows and marker together, and WATCH makes sure that the marker is still the one we read.

It demands `appendonly yes` and `appendfsync always`, and that the marker neither expires nor is evicted.
"""

import json
import os

from redis import Redis

store = Redis.from_url(os.environ.get("REDIS", "redis://localhost:6379"))


def write_batch(rows, query, batch):
    marker = f"orders:last-batch:{query}"
    with store.pipeline(transaction=True) as transaction:
        transaction.watch(marker)
        if int(transaction.get(marker) or -1) >= batch:
            return
        transaction.multi()
        transaction.rpush("orders", *[json.dumps(row) for row in rows])
        transaction.set(marker, batch)
        transaction.execute()  # raises WatchError if another writer was faster


def read():
    return [json.loads(row) for row in store.lrange("orders", 0, -1)]


def reset():
    store.delete("orders", *store.scan_iter("orders:last-batch:*"))
