"""Takes a write for complete that returned, whatever number it returned."""

import os
from pathlib import Path

STORE = Path("store")

for part in sorted(Path("input").iterdir()):
    hidden = STORE / f".{part.name}"
    file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(file, part.read_bytes())
    os.close(file)
    os.replace(hidden, STORE / part.name)
