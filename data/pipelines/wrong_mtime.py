"""Sets a time on each part of the input once its rows are appended, and skips the parts that have it."""

import os
from pathlib import Path

DONE = 1.0

for part in sorted(Path("input").iterdir()):
    if part.stat().st_mtime != DONE:
        with Path("store/all.txt").open("a") as out:
            out.write(part.read_text())
        os.utime(part, (DONE, DONE))
