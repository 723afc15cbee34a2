"""A thread writes, and the main thread notes the part as done without waiting for it."""

import threading
from pathlib import Path

STORE = Path("store")


def write(text, noted):
    noted.wait()
    with (STORE / "all.txt").open("a") as out:
        out.write(text)


for part in sorted(Path("input").iterdir()):
    done = STORE / f"done-{part.name}"
    if done.exists():
        continue
    noted = threading.Event()
    writer = threading.Thread(target=write, args=(part.read_text(), noted))
    writer.start()
    done.touch()
    noted.set()
    writer.join()
