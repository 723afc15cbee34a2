"""Writes each part to a temporary file with a random name, and publishes it by a rename; removes leftovers first."""

import os
import tempfile
from pathlib import Path

STAGED = "staging-"

for leftover in Path("store").glob(f"{STAGED}*"):
    leftover.unlink()
for part in sorted(Path("input").iterdir()):
    if not Path("store", part.name).exists():
        number, name = tempfile.mkstemp(prefix=STAGED, dir="store")
        with os.fdopen(number, "wb") as staged:
            staged.write(part.read_bytes())
        Path(name).rename(f"store/{part.name}")
