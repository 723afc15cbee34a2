"""A part that has ended three attempts goes to the dead letters, although the attempts did not fail by its fault."""

import os
from pathlib import Path


def publish(path: Path, text: str) -> None:
    staged = path.with_name(f".{path.name}")
    staged.write_text(text)
    os.replace(staged, path)


for part in sorted(Path("input").iterdir()):
    out, attempts = Path(f"store/{part.name}"), Path(f"store/attempts-{part.name}")
    if out.exists():
        continue
    made = int(attempts.read_text()) if attempts.exists() else 0
    if made < 3:
        publish(attempts, str(made + 1))
        publish(out, part.read_text())
    else:
        publish(Path(f"store/dead-{part.name}"), "")
