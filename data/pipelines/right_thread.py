"""Three threads write a file each, under another name; the main thread waits and makes them readable."""

import os
import threading
from pathlib import Path

STORE = Path("store")


def write(part):
    (STORE / f".{part.name}").write_text(part.read_text())


parts = sorted(Path("input").iterdir())
writers = [threading.Thread(target=write, args=(part,)) for part in parts]
for writer in writers:
    writer.start()
for writer in writers:
    writer.join()
for part in parts:
    os.replace(STORE / f".{part.name}", STORE / part.name)
