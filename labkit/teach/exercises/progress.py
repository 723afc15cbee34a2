"""How far a learner has come: one small file beside the notebooks, and memory where no file can be written.

What is in it is the learner's own note; the grader never reads it. This module must not judge.
"""

import json
from pathlib import Path
from typing import TypedDict, Unpack

from labkit.teach.exercises.moved import now

NAME = "labkit-progress.json"
"""The file's name, in the folder in which the notebook runs."""
LARGEST = 1_000_000
"""Bytes of the largest file that is read."""


class Note(TypedDict, total=False):
    """What is noted of one exercise. It is read from a file that the learner can write, so a reader converts it."""

    state: str
    question: str
    """Of a question its text, for whoever reads the file."""
    why: str
    points: int
    hints: int
    """How many hints were given."""
    predicted: str | list[str]
    """The first prediction, which is kept; of a question what was said last before its answer was shown."""
    came: str | list[str]
    """What came of it."""


_kept: dict[str, Note] = {}


def of(name: str) -> Note:
    """What is noted of one exercise; empty where nothing is."""
    return _all().get(name, Note()).copy()


def note(name: str, **more: Unpack[Note]) -> None:
    """Notes something of one exercise. A folder that cannot be written to is no error: it is kept in memory then."""
    known = _all()
    known[name] = {**known.get(name, Note()), **more}
    _write(known)


def forget(name: str) -> None:
    """Drops what is noted of one exercise."""
    known = _all()
    if known.pop(name, None) is not None:
        _write(known)


def _all() -> dict[str, Note]:
    path = Path(NAME)
    try:
        if path.stat().st_size <= LARGEST:
            read = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(read, dict) and all(
                isinstance(each, dict) for each in read.values()
            ):
                return _carried_over(read)
    except (OSError, ValueError):
        pass
    return dict(_kept)


def _carried_over(read: dict[str, Note]) -> dict[str, Note]:
    """What was noted under a name that an exercise had before stands under its name now."""
    return {now(name): note for name, note in read.items() if now(name) not in read} | {
        name: note for name, note in read.items() if now(name) == name
    }


def _write(known: dict[str, Note]) -> None:
    _kept.clear()
    _kept.update(known)
    path = Path(NAME)
    part = path.with_suffix(".part")
    try:
        part.write_text(
            json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
