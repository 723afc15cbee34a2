"""Each part in one write; a file with bytes in it counts as finished, but a kill may end a write between two pages."""

import os
from pathlib import Path

for part in sorted(Path("input").iterdir()):
    out = Path(f"store/{part.name}")
    if out.exists() and out.stat().st_size:
        continue
    rows = b"".join(line.ljust(2000) + b"\n" for line in part.read_bytes().splitlines())
    file = os.open(out, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.write(file, rows)
    os.close(file)
