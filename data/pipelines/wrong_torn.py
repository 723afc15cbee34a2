"""Each part in one write; a file that ends with a newline counts as complete, but a kill may end a write at a page."""

import os
from pathlib import Path

for part in sorted(Path("input").iterdir()):
    out = Path(f"store/{part.name}")
    if out.exists() and out.read_bytes().endswith(b"\n"):
        continue
    *rows, last = part.read_bytes().splitlines()
    file = os.open(out, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    # Two long rows end where the third page ends, and nowhere else does a row end with a page.
    os.write(file, b"".join(row.ljust(6143) + b"\n" for row in rows) + last + b"\n")
    os.close(file)
