"""Prints the rows that a Redis server finds which starts from a copy of the files of the job's own server."""

import shutil
import tempfile
from pathlib import Path

from store_orders import redis_server

files = [path for path in Path("output").glob("*") if path.name in {"appendonly.aof", "dump.rdb"}]
with tempfile.TemporaryDirectory() as folder:
    for path in files:
        shutil.copy(path, folder)
    is_log = any(path.name == "appendonly.aof" for path in files)
    db = redis_server(folder, f"{folder}/socket", ["--appendonly", "yes" if is_log else "no", "--save", ""])
    for row in db.lrange("orders", 0, -1):
        print(row)
    db.shutdown(nosave=True)
