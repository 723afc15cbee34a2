"""Each start names itself the owner, and then finishes what the owner before it has noted; older notes do not count."""

import os
import uuid
from pathlib import Path

STORE = Path("store")
OWNER, NOTE, NEW = STORE / "owner", STORE / "note", STORE / "new"


def save(path, text):
    NEW.write_text(text)
    os.replace(NEW, path)


before, me = OWNER.read_text() if OWNER.exists() else "", str(uuid.uuid4())
save(OWNER, me)  # the mistake: after a crash here, nobody counts the note any more
if NOTE.exists():
    owner, part, rows = NOTE.read_text().split()
    if owner == before and Path(rows).exists():
        (STORE / f"done-{part}").touch()
    NOTE.unlink()
for part in sorted(Path("input").iterdir()):
    done, rows = STORE / f"done-{part.name}", STORE / f"rows-{uuid.uuid4()}"
    if not done.exists():
        save(NOTE, f"{me} {part.name} {rows}")
        save(rows, part.read_text())
        done.touch()
        NOTE.unlink()
