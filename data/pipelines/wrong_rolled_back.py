"""Stages a part, decides in the checkpoint, then publishes: right until somebody restores an older checkpoint."""

import json
import os
from pathlib import Path

STORE, CHECKPOINT = Path("store"), Path("checkpoint")
LOG = CHECKPOINT / "log"


def publish(decided):
    """What was decided becomes readable; what was only staged goes."""
    for staged in STORE.glob(".staged-*"):
        if staged.name in decided.values():
            staged.rename(STORE / staged.name.replace(".staged", "part"))
        else:
            staged.unlink()


CHECKPOINT.mkdir(exist_ok=True)
decided = json.loads(LOG.read_text()) if LOG.exists() else {}
publish(decided)
for part in sorted(Path("input").iterdir()):
    if part.name in decided:
        continue
    staged = STORE / f".staged-{os.getpid()}-{part.name}"
    staged.write_text(part.read_text())
    decided[part.name] = staged.name
    Path(f"{LOG}.new").write_text(json.dumps(decided))
    os.replace(f"{LOG}.new", LOG)
    publish(decided)
