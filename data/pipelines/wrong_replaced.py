"""Replaces its only file by a rename, and syncs nothing: right until the power fails, and stuck afterwards."""

import json
from pathlib import Path

FILE = Path("store/rows.json")
rows = json.loads(FILE.read_text()) if FILE.exists() else []
for part in sorted(Path("input").iterdir())[len(rows) // 3 :]:
    for line in part.read_text().splitlines():
        number, fruit = line.split()
        rows.append({"id": int(number), "key": fruit})
    new = FILE.with_suffix(".new")
    new.write_text(json.dumps(rows))
    new.rename(FILE)
