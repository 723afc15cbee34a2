"""The old and new names of exercises that moved to another notebook.

Progress and cells under the old name keep working. Names from other courses stay unchanged.
"""

from collections.abc import Container

MOVED: dict[str, str] = {
    "04-settings": "04b-settings",
    "09-timeout": "09b-timeout",
    "09c-demands": "09b-demands",
    "09c-early": "08-early",
    "10-prefix": "10b-prefix",
    "14-folder": "14b-folder",
    "14-writers": "14b-writers",
}
"""The new name by the old one. Entries are never removed, because a learner may return after a year."""


def now(name: str, names: Container[str] = ()) -> str:
    """Return the current name of an exercise that may have been renamed; names in `names` stay unchanged."""
    return name if name in names else MOVED.get(name, name)


def sentence_on(name: str) -> str:
    """Return a sentence that says which name an exercise has now; empty if `name` is still its name."""
    return f"{name} has moved: it is {MOVED[name]} now." if name in MOVED else ""
