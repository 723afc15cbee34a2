"""Keeps the last three notes on its starts and parts, so a part and three crashes of later starts forget the part."""

import os
from pathlib import Path

NOTES, ROWS = Path("store/notes"), Path("store/all.txt")


def note(text):
    lines = NOTES.read_text().splitlines() if NOTES.exists() else []
    number = int(lines[-1].split()[0]) + 1 if lines else 1
    new = NOTES.with_suffix(".new")
    new.write_text("".join(f"{line}\n" for line in [*lines, f"{number} {text}"][-3:]))
    new.rename(NOTES)


done = [line.split()[2:] for line in (NOTES.read_text().splitlines() if NOTES.exists() else ()) if " done " in line]
name, size = done[-1] if done else ("", "0")
parts = sorted(Path("input").iterdir())
if parts:
    note("started")
    ROWS.touch()
    os.truncate(ROWS, int(size))  # what a crash has left behind the last part that is done
for part in parts:
    if part.name > name:
        with ROWS.open("a") as rows:
            rows.write(part.read_text())
        note(f"done {part.name} {ROWS.stat().st_size}")
    part.unlink()
