"""Goes on with the rest of the bytes until all of them are written."""

import os
from pathlib import Path

STORE = Path("store")

for part in sorted(Path("input").iterdir()):
    hidden = STORE / f".{part.name}"
    file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    rest = part.read_bytes()
    while rest:
        rest = rest[os.write(file, rest) :]
    os.close(file)
    os.replace(hidden, STORE / part.name)
