"""Appends a part, then notes its name in a state folder that the environment names and nobody watches."""

import os
from pathlib import Path

marker = Path(os.environ["JOB_STATE"], "done")
marker.parent.mkdir(exist_ok=True)
done = marker.read_text() if marker.exists() else ""
for part in sorted(Path("input").iterdir()):
    if part.name > done:
        with Path("store/all.txt").open("a") as out:
            out.write(part.read_text())
        marker.write_text(part.name)
