"""Finds the student who owns a file, from the name that a learning platform gave the file: one function per platform.

The platform's number or account identifies the student, never a display name. A fact that the file name does not state
remains unknown.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import PurePath
from typing import Any

import msgspec

LONGEST = 200
"""The largest number of characters of a file or student name that a page shows."""


class Platform(StrEnum):
    """The learning platforms whose downloads `labkit grade` reads."""

    PLAIN = "plain"
    """No platform: folders, archives or files that a person named."""
    MOODLE = "moodle"
    CANVAS = "canvas"
    BLACKBOARD = "blackboard"
    BRIGHTSPACE = "brightspace"
    GRADESCOPE = "gradescope"
    GITHUB = "github"


class Person(msgspec.Struct, frozen=True):
    """A person whom a learning platform names in its lists: name, id and e-mail address, if these are stated."""

    name: str = ""
    id: str = ""
    email: str = ""


@dataclass(frozen=True)
class Origin:
    """The student who owns an uploaded file, and facts about the upload, all derived from the file's path."""

    key: str
    """The student's unique key, which is the same in every download of a platform."""
    shown: str
    """The student's name for people to read; other students may have the same."""
    platform: Platform = Platform.PLAIN
    account: str = ""
    """The platform's own number or name for the student."""
    late: bool = False
    """Whether the platform marked the file as late."""
    when: datetime | None = None
    """The date that the platform states, or None if the name contains none."""
    dated: bool = True
    """Whether somebody other than the student states the submission's date, so that it can prove lateness."""
    dated_by: str = ""
    """The archive whose own date counts, because the student may have packed it; the true date may be earlier."""
    upload: str = ""
    """The file or folder name under which the platform expects the feedback."""
    people: tuple[Person, ...] = ()
    """All people who handed the file in together, if the platform states them."""


@dataclass(frozen=True)
class Context:
    """Facts about a whole download that no single file name shows, such as the list of students.

    `labkit.grading.surveys` collects these facts.
    """

    shaped: bool = False
    """Whether any name has a platform's format; if so, top-level files with other names are the platform's own."""
    wrapped: bool = False
    """Whether the download has one additional top-level folder that holds all files."""
    blackboard: int = 0
    """The number of leading words, separated by `_`, that belong to course and assignment in every Blackboard name."""
    owners: Mapping[str, Person] = field(default_factory=dict)
    """The students named in Blackboard's text files, by the part of a file name before `_attempt_`."""
    submitters: Mapping[str, tuple[Person, ...]] = field(default_factory=dict)
    """The people who submitted together according to Gradescope, by folder."""
    dates: Mapping[str, datetime] = field(default_factory=dict)
    """The dates that Gradescope states, by folder."""
    users: Mapping[str, str] = field(default_factory=dict)
    """The GitHub user of each cloned repository, by folder."""


NO_CONTEXT = Context()


def text(name: str) -> str:
    """Return a file name as valid Unicode text; bytes that are not valid UTF-8 are escaped."""
    spelled = name.replace("\\", "\\\\")
    try:
        raw = spelled.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = spelled.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")


def shown(name: str) -> str:
    """Return a name for display: without unprintable characters, and cut to `LONGEST` characters."""
    plain = unicodedata.normalize("NFC", text(name))
    letters = "".join(letter if letter.isprintable() else "_" for letter in plain)
    return " ".join(letters.split())[:LONGEST] or "nobody"


_MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?P<kind>[a-z]+)_?(?P<file>.*)", re.DOTALL)
_CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_.+", re.DOTALL)
BLACKBOARD = re.compile(r"(?P<who>.+?)_attempt_(?P<date>\d{4}(?:-\d\d){5})(?P<rest>.*)", re.DOTALL)
_BRIGHTSPACE = re.compile(r"(?P<id>\d+)-\d+ - (?P<name>.+) - (?P<date>.+)", re.DOTALL)
_GRADESCOPE = re.compile(r"submission_(?P<id>\d+)")
_COPY = re.compile(r"(\s*\(\d+\)|-Copy\d*|-checkpoint)+$")
_DATES = tuple(
    f"{day} {time}"
    for day in ("%b %d, %Y", "%B %d, %Y", "%d %B, %Y", "%d %b, %Y", "%d %B %Y")
    for time in ("%I%M %p", "%I:%M %p", "%H%M", "%H:%M")
)


def _owner(platform: Platform, account: str, name: str, **more: Any) -> Origin:
    """Return the `Origin` of an upload: a student with this account on a platform, and `more` facts."""
    return Origin(f"{platform}-{account}", shown(name), platform, account, **more)


def _moodle(name: str, _context: Context, *, folder: bool) -> Origin | None:
    parts = _MOODLE.fullmatch(name)
    if parts is None or (folder and parts["file"]):
        return None
    upload = text(f"{parts['name']}_{parts['id']}_assignsubmission_file_")
    return _owner(Platform.MOODLE, str(int(parts["id"])), parts["name"], upload=upload)


def _canvas(name: str, _context: Context, *, folder: bool) -> Origin | None:
    parts = None if folder else _CANVAS.fullmatch(name)
    if parts is None:
        return None
    unique, late = f"{parts['name']}_{parts['id']}", parts["late"] is not None
    # Not dated, because Canvas's archives carry the date of the download.
    return _owner(Platform.CANVAS, str(int(parts["id"])), unique, late=late, dated=False, upload=text(name))


def _blackboard(name: str, context: Context, *, folder: bool) -> Origin | None:
    parts = None if folder else BLACKBOARD.fullmatch(name)
    if parts is None:
        return None
    words = parts["who"].split("_")
    person = context.owners.get(parts["who"], Person())
    account = person.id or "_".join(words[min(context.blackboard, len(words) - 1) :])
    when = _date(parts["date"], ("%Y-%m-%d-%H-%M-%S",))
    upload = text(f"{parts['who']}_attempt_{parts['date']}")
    return _owner(Platform.BLACKBOARD, text(account), person.name or account, when=when, upload=upload)


def _brightspace(name: str, _context: Context, *, folder: bool) -> Origin | None:
    parts = _BRIGHTSPACE.fullmatch(name)
    if parts is None:
        return None
    when = _date(parts["date"] if folder else PurePath(parts["date"]).stem, _DATES)
    if when is None and not folder:
        return None
    return _owner(Platform.BRIGHTSPACE, str(int(parts["id"])), parts["name"], when=when, upload=text(name))


def _gradescope(name: str, context: Context, *, folder: bool) -> Origin | None:
    parts = _GRADESCOPE.fullmatch(name) if folder else None
    if parts is None:
        return None
    people = context.submitters.get(name, ())
    first = people[0] if people else Person()
    account = first.id or first.email
    names = ", ".join(person.name for person in people if person.name)
    return Origin(
        f"gradescope-{text(account)}" if account else f"gradescope-submission-{parts['id']}",
        shown(names or name),
        Platform.GRADESCOPE,
        text(account),
        when=context.dates.get(name),
        upload=name,
        people=people,
    )


def _github(name: str, context: Context, *, folder: bool) -> Origin | None:
    clone = name if folder or not name.lower().endswith(".zip") else PurePath(name).stem
    if clone not in context.users or (clone == name and not folder):
        return None
    user = context.users[clone]
    return _owner(Platform.GITHUB, text(user), user, dated=False, upload=text(name))


_PLATFORMS: Sequence[Callable[..., Origin | None]] = (_moodle, _brightspace, _gradescope, _github, _blackboard, _canvas)
"""The functions, one for each platform, that find the owner by the name of a folder or file; None for other names."""


def platform_origin(name: str, context: Context, *, folder: bool) -> Origin | None:
    """Return the student whom a learning platform has named in a file or folder name.

    Returns None if the name does not have the format of any platform.
    """
    origins = (read(name, context, folder=folder) for read in _PLATFORMS)
    return next((origin for origin in origins if origin is not None), None)


def plain_origin(name: str) -> Origin:
    """Return the owner of a file that no learning platform has named: a student called exactly `name`."""
    return Origin(text(name), shown(name))


def origin(place: PurePath, notebooks: Collection[str], context: Context = NO_CONTEXT) -> Origin:
    """Return the student who owns a file, and other facts that the file's path states.

    The path begins with the folder or archive that the user named, and its second part names the student. Deeper parts
    are ignored, because the student may have chosen them.
    """
    root, *folders, name = place.parts if len(place.parts) > 1 else ("", *place.parts)
    if context.wrapped:
        folders = folders[1:]
    if folders:
        return platform_origin(folders[0], context, folder=True) or plain_origin(folders[0])
    return platform_origin(name, context, folder=False) or _beside_notebook(root or name, name, notebooks)


def _beside_notebook(root: str, name: str, notebooks: Collection[str]) -> Origin:
    """Return the student who is named in the file name `name`, for example `ada` in `ada-06_sinks.ipynb`.

    The names in `notebooks` are not part of the student's name. If nothing else is left, the student is called `root`,
    which is the name of the folder or archive that contains the file.
    """
    stem = _COPY.sub("", PurePath(name).stem)
    for notebook in notebooks:
        stem = stem.replace(notebook, "")
    return plain_origin(stem.strip(" _-.()[]") or root)


def _date(written: str, forms: Iterable[str]) -> datetime | None:
    for form in forms:
        with suppress(ValueError, OverflowError):
            return datetime.strptime(written, form).astimezone()
    return None
