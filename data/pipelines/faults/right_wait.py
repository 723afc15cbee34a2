"""Waits some seconds for a thread that writes a part, and ends with an error if it is late."""

import os
import threading
from pathlib import Path

STORE, SECONDS = Path("store"), 4.0


def write(part):
    hidden = STORE / f".{part.name}"
    hidden.write_bytes(part.read_bytes())
    os.replace(hidden, STORE / part.name)


for part in sorted(Path("input").iterdir()):
    writer = threading.Thread(target=write, args=[part], daemon=True)
    writer.start()
    writer.join(SECONDS)
    if writer.is_alive():
        os._exit(1)
