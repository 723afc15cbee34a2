"""Writes each part to a file named after the part and the time, and publishes it by a rename."""

from datetime import UTC, datetime
from pathlib import Path

for part in sorted(Path("input").iterdir()):
    if not list(Path("store").glob(f"{part.name}.*")):
        name = f"{part.name}.{datetime.now(UTC).isoformat()}"
        staged = Path(f"store/.{name}")
        staged.write_bytes(part.read_bytes())
        staged.rename(f"store/{name}")
