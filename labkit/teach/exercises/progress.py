"""How far a learner has come: one small file beside the notebooks, and memory where no file can be written.

What is in it is the learner's own note; the grader never reads it. A file that is damaged is put aside, and never
overwritten.
"""

import itertools
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TypedDict, Unpack, cast

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
"""All that was known when something was noted last."""
_unwritten: set[str] = set()
"""What could not be written since; the rest is read from the file each time, since other notebooks write there, too."""


def of(name: str) -> Note:
    """What is noted of one exercise; empty where nothing is. A count that is none is left out."""
    note = _all().get(name, Note()).copy()
    if not isinstance(note.get("points", 0), int):
        del note["points"]
    if not isinstance(note.get("hints", 0), int):
        del note["hints"]
    return note


def note(name: str, **more: Unpack[Note]) -> None:
    """Notes something of one exercise. A folder that cannot be written to is no error: it is kept in memory then."""
    known = _all()
    known[name] = {**known.get(name, Note()), **more}
    _write(known, name)


def forget(name: str) -> None:
    """Drops what is noted of one exercise."""
    known = _all()
    if known.pop(name, None) is not None:
        _write(known, name)


def _all() -> dict[str, Note]:
    known, _ = _read()
    if known is None:
        known = dict(_kept)
    for name in _unwritten:
        if name in _kept:
            known[name] = _kept[name]
        else:
            known.pop(name, None)
    return known


def _read() -> tuple[dict[str, Note] | None, bool]:
    """What the file says, None where it says nothing; and whether that is all that is in it."""
    path = Path(NAME)
    try:
        if path.stat().st_size > LARGEST:
            return None, False
        read = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None, True
    except (OSError, ValueError, RecursionError):
        return None, False
    if not isinstance(read, dict):
        return None, False
    known: dict[str, Note] = {name: cast("Note", each) for name, each in read.items() if isinstance(each, dict)}
    return _carried_over(known), len(known) == len(read)


def _carried_over(read: dict[str, Note]) -> dict[str, Note]:
    """What was noted under a name that an exercise had before stands under its name now."""
    return {now(name): note for name, note in read.items() if now(name) not in read} | {
        name: note for name, note in read.items() if now(name) == name
    }


def _write(known: dict[str, Note], changed: str) -> None:
    _kept.clear()
    _kept.update(known)
    _unwritten.add(changed)
    part = Path(f"{NAME}.{os.getpid()}.part")
    try:
        part.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        _keep_damaged()
        part.replace(NAME)
        _unwritten.clear()
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _keep_damaged() -> None:
    """Puts a file that cannot be read, or not all of it, beside the new one: nothing that was in it is lost."""
    _, whole = _read()
    if not whole:
        path = Path(NAME)
        names = (Path(f"{NAME}.damaged-{number}") for number in itertools.count(1))
        path.rename(next(name for name in names if not name.exists()))
