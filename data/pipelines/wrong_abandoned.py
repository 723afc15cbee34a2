"""Stages each part, decides, and publishes; but a start removes staged files that are older than three seconds."""

import os
import time
from pathlib import Path

DECIDED = Path("store/decided")
decided = DECIDED.read_text().split() if DECIDED.exists() else []
for staged in Path("store").glob("staged-*"):
    name = staged.name.partition("-")[2]
    if time.time() - staged.stat().st_mtime > 3:
        staged.unlink()
    elif name in decided:
        staged.rename(f"store/{name}")
for part in sorted(Path("input").iterdir()):
    if part.name not in decided:
        Path("store/new").write_bytes(part.read_bytes())
        os.replace("store/new", f"store/staged-{part.name}")
        decided.append(part.name)
        Path("store/decided.new").write_text(" ".join(decided))
        os.replace("store/decided.new", DECIDED)
        Path(f"store/staged-{part.name}").rename(f"store/{part.name}")
