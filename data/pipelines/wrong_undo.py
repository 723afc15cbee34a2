"""Undoes what a crash left half done, but removes its undo file before it truncates the output back."""

import os
from pathlib import Path

OUT, UNDO = Path("store/all.txt"), Path("store/undo")
OUT.touch()

if UNDO.exists():
    size = int(UNDO.read_text())
    UNDO.unlink()
    os.truncate(OUT, size)
for part in sorted(Path("input").iterdir()):
    done = Path(f"store/done-{part.name}")
    if done.exists():
        continue
    Path("store/undo.new").write_text(str(OUT.stat().st_size))
    os.replace("store/undo.new", UNDO)
    with OUT.open("ab") as out:
        out.write(part.read_bytes())
    # One rename notes the part and takes its undo file away.
    UNDO.rename(done)
