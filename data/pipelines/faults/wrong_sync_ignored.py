"""Publishes a part although its sync failed: the error is noted in a log that nobody reads."""

import os
from pathlib import Path

STORE = Path("store")

for part in sorted(Path("input").iterdir()):
    done = STORE / f"done-{part.name}"
    if done.exists():
        continue
    hidden = STORE / f".{part.name}"
    with hidden.open("w") as file:
        file.write(part.read_text())
        file.flush()
        try:
            os.fsync(file.fileno())
        except OSError as error:
            print(f"warning: {error}")
    os.replace(hidden, STORE / part.name)
    done.touch()
