"""Exercises that have moved to another notebook: their names before and now.

Learners have progress, cells and habits under the old name; each of them is carried over. A name of somebody else's
course is left alone.
"""

from collections.abc import Container

MOVED: dict[str, str] = {"09-timeout": "09b-timeout", "14-folder": "14b-folder", "14-writers": "14b-writers"}
"""The name now, by the name before. A line stays for good: a learner may come back after a year."""


def now(name: str, known: Container[str] = ()) -> str:
    """The name that an exercise has now. A name that is among those `known` is left as it is."""
    return name if name in known else MOVED.get(name, name)


def sentence_on(name: str) -> str:
    """The sentence on an exercise that was asked for by the name before; empty where it has not moved."""
    return f"{name} has moved: it is {MOVED[name]} now." if name in MOVED else ""
