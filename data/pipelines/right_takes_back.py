"""Writes each row visibly at once; a restart takes back what lies behind the length that its log has noted last."""

import os
from pathlib import Path

LOG = Path("checkpoint/log")
LOG.parent.mkdir(exist_ok=True)
decided, length = LOG.read_text().split() if LOG.exists() else ("", "0")
if Path("store/all.txt").exists() and Path("store/all.txt").stat().st_size > int(length):
    os.truncate("store/all.txt", int(length))
for part in sorted(Path("input").iterdir()):
    if part.name <= decided:
        continue
    with Path("store/all.txt").open("a", buffering=1) as out:
        out.writelines(part.read_text().splitlines(keepends=True))
    Path("checkpoint/log.new").write_text(f"{part.name} {Path('store/all.txt').stat().st_size}")
    os.replace("checkpoint/log.new", LOG)
