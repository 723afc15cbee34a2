"""A thread writes each part. The main thread waits for it at most a second, does not look, and removes the input."""

import os
import threading
from pathlib import Path

STORE = Path("store")


def write(name, text):
    (STORE / f".{name}").write_text(text)
    os.replace(STORE / f".{name}", STORE / name)


for part in sorted(Path("input").iterdir()):
    writer = threading.Thread(target=write, args=(part.name, part.read_text()), daemon=True)
    writer.start()
    writer.join(timeout=1)
    part.unlink()
