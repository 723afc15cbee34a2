"""Two copies take turns, and the newer file counts. To check the disk, each start writes both anew, oldest first."""

import os
import time
from pathlib import Path

STORE = Path("store")
TICK = 0.02  # seconds: longer than a step of the clock that dates files, so no two files have the same time


def by_age():
    return sorted(STORE.glob("copy-?"), key=lambda copy: copy.stat().st_mtime_ns)


for copy in by_age():
    with copy.open("r+b") as file:
        same = file.read()
        file.seek(0)
        file.write(same)
    time.sleep(TICK)
text = by_age()[-1].read_text() if by_age() else ""
for part in sorted(Path("input").iterdir()):
    if part.read_text() not in text:
        text += part.read_text()
        copies = by_age()
        (STORE / "new").write_text(text)
        os.replace(STORE / "new", copies[0] if len(copies) == 2 else STORE / f"copy-{len(copies)}")
        time.sleep(TICK)
    part.unlink()
