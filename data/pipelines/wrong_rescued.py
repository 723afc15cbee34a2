"""Publishes each part by a rename, and after two quiet starts also publishes what a crash left unpublished."""

from pathlib import Path

QUIET, STARTS = Path("store/quiet"), Path("store/starts")


def number(path):
    return len(path.read_text()) if path.exists() else 0


quiet = number(QUIET)
QUIET.unlink(missing_ok=True)
start = number(STARTS) + 1
with STARTS.open("a") as starts:
    starts.write(".")
if quiet >= 2:
    for left in Path("store").glob("staged-*"):
        left.rename(f"store/part-{left.name.partition('-')[2]}")
for part in sorted(Path("input").iterdir()):
    if not list(Path("store").glob(f"part-{part.name}.*")):
        staged = Path(f"store/staged-{part.name}.{start}")
        staged.write_bytes(part.read_bytes())
        staged.rename(f"store/part-{part.name}.{start}")
QUIET.write_text("." * (quiet + 1))
