"""A learner's progress: one small file next to the notebooks, or memory if no file can be written.

The file is the learner's own record, and the grader never reads it. A damaged file is renamed and never overwritten.
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
"""The largest size, in bytes, of a progress file that is read."""


class Note(TypedDict, total=False):
    """The saved progress in one exercise or question; learners may edit the file, so callers check the types."""

    state: str
    question: str
    """The text of a question, for people who read the file."""
    why: str
    points: int
    hints: int
    """The number of hints that the learner has seen."""
    predicted: str | list[str]
    """The first prediction for an exercise; for a question, the last prediction before the answer was shown."""
    came: str | list[str]
    """The outcome of the run for which the prediction was made."""


_kept: dict[str, Note] = {}
"""All records of this process at the time of the last change, by exercise or question."""
_unwritten: set[str] = set()
"""The exercises whose latest records could not be written; others are read again from the file."""


def of(name: str) -> Note:
    """Return the saved progress in one exercise or question; empty if there is none."""
    note = _all().get(name, Note()).copy()
    if not isinstance(note.get("points", 0), int):
        del note["points"]
    if not isinstance(note.get("hints", 0), int):
        del note["hints"]
    return note


def note(name: str, **more: Unpack[Note]) -> None:
    """Add values to the saved progress in the exercise or question `name`.

    If the file cannot be written, the values are kept in memory.
    """
    stored = _all()
    stored[name] = {**stored.get(name, Note()), **more}
    _write(stored, name)


def forget(name: str) -> None:
    """Delete the saved progress in one exercise or question."""
    stored = _all()
    if stored.pop(name, None) is not None:
        _write(stored, name)


def _all() -> dict[str, Note]:
    stored, _ = _read()
    if stored is None:
        stored = dict(_kept)
    for name in _unwritten:
        if name in _kept:
            stored[name] = _kept[name]
        else:
            stored.pop(name, None)
    return stored


def _read() -> tuple[dict[str, Note] | None, bool]:
    """Return a pair: the saved progress, and whether all of the file could be read.

    The progress is a dict from an exercise or question to its note, or None if there is no usable file. The second
    item is true if there is no file at all.
    """
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
    stored: dict[str, Note] = {name: cast("Note", each) for name, each in read.items() if isinstance(each, dict)}
    carried_over = {now(name): note for name, note in stored.items() if now(name) not in stored}
    current = {name: note for name, note in stored.items() if now(name) == name}
    return carried_over | current, len(stored) == len(read)


def _write(notes_by_name: dict[str, Note], changed: str) -> None:
    _kept.clear()
    _kept.update(notes_by_name)
    _unwritten.add(changed)
    part = Path(f"{NAME}.{os.getpid()}.part")
    try:
        part.write_text(json.dumps(notes_by_name, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        _keep_damaged()
        part.replace(NAME)
        _unwritten.clear()
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _keep_damaged() -> None:
    # Writing would destroy the content of a file that is only partly readable.
    _, is_complete = _read()
    if not is_complete:
        path = Path(NAME)
        names = (Path(f"{NAME}.damaged-{number}") for number in itertools.count(1))
        path.rename(next(name for name in names if not name.exists()))
