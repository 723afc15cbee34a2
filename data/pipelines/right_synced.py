"""Syncs a part, renames it, syncs the folder, and only then marks it, which is synced as well."""

import os
from pathlib import Path

STORE = Path("store")


def sync(path):
    opened = os.open(path, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


for part in sorted(Path("input").iterdir()):
    done = STORE / f"done-{part.name}"
    if done.exists():
        continue
    hidden = STORE / f".{part.name}"
    hidden.write_text(part.read_text())
    sync(hidden)
    os.replace(hidden, STORE / part.name)
    sync(STORE)
    done.touch()
    sync(STORE)
