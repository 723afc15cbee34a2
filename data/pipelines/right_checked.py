"""One rename for each part; after a crash, one start cleans and one checks, and each of the two ends with an error."""

import os
import sys
from pathlib import Path

RUNNING, CLEANED, CHECKED = Path("store/running"), Path("store/cleaned"), Path("store/checked")
if CHECKED.exists():
    CHECKED.unlink()
elif CLEANED.exists():
    CLEANED.rename(CHECKED)
    sys.exit(75)
elif RUNNING.exists():
    RUNNING.rename(CLEANED)
    sys.exit(75)
RUNNING.touch()
for part in sorted(Path("input").iterdir()):
    if not Path(f"store/{part.name}").exists():
        Path("store/new").write_bytes(part.read_bytes())
        os.replace("store/new", f"store/{part.name}")
RUNNING.unlink()
