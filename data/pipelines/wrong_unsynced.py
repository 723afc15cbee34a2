"""Syncs the mark of a part, and not the part: right until the power fails."""

import os
from pathlib import Path

STORE = Path("store")

for part in sorted(Path("input").iterdir()):
    done = STORE / f"done-{part.name}"
    if done.exists():
        continue
    hidden = STORE / f".{part.name}"
    hidden.write_text(part.read_text())
    os.replace(hidden, STORE / part.name)
    done.touch()
    folder = os.open(STORE, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
