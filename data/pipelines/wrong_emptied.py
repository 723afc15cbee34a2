"""Appends each part, and then empties the part's mark, which is empty already: only the mark's time has changed."""

from pathlib import Path

for part in sorted(Path("input").iterdir()):
    mark = Path("store", f"mark-{part.name}")
    if mark.stat().st_mtime_ns == 0:
        with Path("store/all.txt").open("a") as store:
            store.write(part.read_text())
        mark.open("w").close()
