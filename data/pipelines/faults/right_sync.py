"""Ends with the error of a failed sync; the next start writes the part anew from the input."""

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
        os.fsync(file.fileno())
    os.replace(hidden, STORE / part.name)
    done.touch()
