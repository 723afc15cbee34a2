"""Takes four rows at a time from input that may grow, and trusts a file of a batch that a crash left."""

import os
from pathlib import Path


def publish(path: Path, text: str) -> None:
    staged = path.with_name(f".{path.name}")
    staged.write_text(text)
    os.replace(staged, path)


place = Path("store/place")
batch, done = map(int, place.read_text().split()) if place.exists() else (0, 0)
rows = [row for part in sorted(Path("input").iterdir()) for row in part.read_text().splitlines(keepends=True)]

while rows[done:]:
    taken = rows[done : done + 4]
    out = Path(f"store/part-{batch}")
    if not out.exists():
        publish(out, "".join(taken))
    batch, done = batch + 1, done + len(taken)
    publish(place, f"{batch} {done}")
