"""Rolls back the first part that a crash left half done, and no other part after it."""

import os
from pathlib import Path

OUT, BEGUN, REPAIRED = Path("store/all.txt"), Path("store/begun"), Path("store/repaired")
OUT.touch()


def replace(path, text):
    new = Path(f"{path}.new")
    new.write_text(text)
    os.replace(new, path)


for part in sorted(Path("input").iterdir()):
    done = Path(f"store/done-{part.name}")
    if done.exists():
        continue
    name, size = BEGUN.read_text().split() if BEGUN.exists() else ("", "")
    if name == part.name:
        if not REPAIRED.exists():
            replace(REPAIRED, name)
        if REPAIRED.read_text() == name:
            os.truncate(OUT, int(size))
    replace(BEGUN, f"{part.name} {OUT.stat().st_size}")
    with OUT.open("ab") as out:
        out.write(part.read_bytes())
    done.touch()
