"""Whose a file is, by the name that a learning platform gave it: one function for each platform, and a line in a table.

A student is who the platform says, by its number or account, never by a name that is only shown. What a name does not
say is left open. This module must not read notebooks and must not touch the disk.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import PurePath

import msgspec

LONGEST = 200
"""Characters of a name that is shown."""


class Platform(StrEnum):
    """Where submissions were collected."""

    PLAIN = "plain"
    """Folders, archives or files that somebody named."""
    MOODLE = "moodle"
    CANVAS = "canvas"
    BLACKBOARD = "blackboard"
    BRIGHTSPACE = "brightspace"
    GRADESCOPE = "gradescope"
    GITHUB = "github"


class Person(msgspec.Struct, frozen=True):
    """Somebody whom a platform names, as far as it does."""

    name: str = ""
    id: str = ""
    email: str = ""


@dataclass(frozen=True)
class Origin:
    """Whose a file is, and what its name says of when it was handed in."""

    key: str
    """What no other student has. The same student has the same one in every download of a platform."""
    shown: str
    """The name to show, which others may have, too."""
    platform: Platform = Platform.PLAIN
    account: str = ""
    """The platform's own number or name for the student."""
    late: bool = False
    """Whether the platform marked it as late."""
    when: datetime | None = None
    """The platform's date, where the name has one."""
    dated: bool = True
    """Whether anything but the student says when it was handed in."""
    upload: str = ""
    """The name under which the platform takes feedback back, or the folder for it."""
    people: tuple[Person, ...] = ()
    """Everybody who handed it in together, where the platform says so."""


@dataclass(frozen=True)
class Context:
    """What the other names in a download say: a name alone does not show where an assignment ends and a student begins."""

    shaped: bool = False
    """Whether a platform has named anything in it; other files at the outermost level are then the platform's own."""
    wrapped: bool = False
    """Whether all of it lies in one folder more."""
    blackboard: int = 0
    """How many words of every name belong to the course and the assignment."""
    owners: Mapping[str, Person] = field(default_factory=dict)
    """Blackboard's own notes on who somebody is, by the beginning of the name."""
    submitters: Mapping[str, tuple[Person, ...]] = field(default_factory=dict)
    """Gradescope's list of who submitted together, by folder."""
    dates: Mapping[str, datetime] = field(default_factory=dict)
    """Gradescope's dates, by folder."""
    users: Mapping[str, str] = field(default_factory=dict)
    """The user of each cloned repository, by folder."""


NOTHING_BESIDE = Context()


def text(name: str) -> str:
    """A name that can be stored and shown anywhere: bytes that are no UTF-8 are spelled out, and nothing is lost."""
    spelled = name.replace("\\", "\\\\")
    try:
        raw = spelled.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = spelled.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")


def shown(name: str) -> str:
    """A name as a page shows it: without what cannot be printed, and not too long."""
    plain = unicodedata.normalize("NFC", text(name))
    letters = "".join(letter if letter.isprintable() else "_" for letter in plain)
    return " ".join(letters.split())[:LONGEST] or "nobody"


_MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?P<kind>[a-z]+)_?(?P<file>.*)",
    re.DOTALL,
)
_CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_.+", re.DOTALL)
BLACKBOARD = re.compile(
    r"(?P<who>.+?)_attempt_(?P<date>\d{4}(?:-\d\d){5})(?P<rest>.*)", re.DOTALL
)
_BRIGHTSPACE = re.compile(r"(?P<id>\d+)-\d+ - (?P<name>.+) - (?P<date>.+)", re.DOTALL)
_GRADESCOPE = re.compile(r"submission_(?P<id>\d+)")
_COPY = re.compile(r"(\s*\(\d+\)|-Copy\d*|-checkpoint)+$")
_DATES = tuple(
    f"{day} {time}"
    for day in ("%b %d, %Y", "%B %d, %Y", "%d %B, %Y", "%d %b, %Y", "%d %B %Y")
    for time in ("%I%M %p", "%I:%M %p", "%H%M", "%H:%M")
)


def _moodle(name: str, _context: Context, *, folder: bool) -> Origin | None:
    parts = _MOODLE.fullmatch(name)
    if parts is None or (folder and parts["file"]):
        return None
    return Origin(
        f"moodle-{int(parts['id'])}",
        shown(parts["name"]),
        Platform.MOODLE,
        str(int(parts["id"])),
        upload=text(f"{parts['name']}_{parts['id']}_assignsubmission_file_"),
    )


def _canvas(name: str, _context: Context, *, folder: bool) -> Origin | None:
    parts = None if folder else _CANVAS.fullmatch(name)
    if parts is None:
        return None
    return Origin(
        f"canvas-{int(parts['id'])}",
        shown(f"{parts['name']}_{parts['id']}"),
        Platform.CANVAS,
        str(int(parts["id"])),
        late=parts["late"] is not None,
        dated=False,  # its archives are dated when they are downloaded
        upload=text(name),
    )


def _blackboard(name: str, context: Context, *, folder: bool) -> Origin | None:
    parts = None if folder else BLACKBOARD.fullmatch(name)
    if parts is None:
        return None
    words = parts["who"].split("_")
    person = context.owners.get(parts["who"], Person())
    account = person.id or "_".join(words[min(context.blackboard, len(words) - 1) :])
    return Origin(
        f"blackboard-{text(account)}",
        shown(person.name or account),
        Platform.BLACKBOARD,
        text(account),
        when=_date(parts["date"], ("%Y-%m-%d-%H-%M-%S",)),
        upload=text(f"{parts['who']}_attempt_{parts['date']}"),
    )


def _brightspace(name: str, _context: Context, *, folder: bool) -> Origin | None:
    parts = _BRIGHTSPACE.fullmatch(name)
    if parts is None:
        return None
    when = _date(parts["date"] if folder else PurePath(parts["date"]).stem, _DATES)
    if when is None and not folder:
        return None
    return Origin(
        f"brightspace-{int(parts['id'])}",
        shown(parts["name"]),
        Platform.BRIGHTSPACE,
        str(int(parts["id"])),
        when=when,
        upload=text(name),
    )


def _gradescope(name: str, context: Context, *, folder: bool) -> Origin | None:
    parts = _GRADESCOPE.fullmatch(name) if folder else None
    if parts is None:
        return None
    people = context.submitters.get(name, ())
    first = people[0] if people else Person()
    account = first.id or first.email
    names = ", ".join(person.name for person in people if person.name)
    return Origin(
        f"gradescope-{text(account)}"
        if account
        else f"gradescope-submission-{parts['id']}",
        shown(names or name),
        Platform.GRADESCOPE,
        text(account),
        when=context.dates.get(name),
        upload=name,
        people=people,
    )


def _github(name: str, context: Context, *, folder: bool) -> Origin | None:
    if not folder or name not in context.users:
        return None
    user = context.users[name]
    return Origin(
        f"github-{text(user)}",
        shown(user),
        Platform.GITHUB,
        text(user),
        dated=False,
        upload=text(name),
    )


_PLATFORMS: Sequence[Callable[..., Origin | None]] = (
    _moodle,
    _brightspace,
    _gradescope,
    _github,
    _blackboard,
    _canvas,
)
"""Each reads one name, of a folder or of a file, and says whose it is if it is of its kind."""


def platform_origin(name: str, context: Context, *, folder: bool) -> Origin | None:
    """Whose a folder or file is by its name, if a platform has named it."""
    origins = (read(name, context, folder=folder) for read in _PLATFORMS)
    return next((origin for origin in origins if origin is not None), None)


def plain_origin(name: str) -> Origin:
    """The student who is called exactly so."""
    return Origin(text(name), shown(name))


def origin(
    place: PurePath, notebooks: Collection[str], context: Context = NOTHING_BESIDE
) -> Origin:
    """The student that a file belongs to.

    `place` begins with the folder or archive that was named. Only the outermost name below it is the platform's: what
    lies deeper, a student may have named. A file that lies there directly has the student in its own name, as the
    platform writes it or beside the name of the notebook.
    """
    root, *folders, name = place.parts if len(place.parts) > 1 else ("", *place.parts)
    if context.wrapped:
        folders = folders[1:]
    if folders:
        return platform_origin(folders[0], context, folder=True) or plain_origin(
            folders[0]
        )
    return platform_origin(name, context, folder=False) or _beside_notebook(
        root or name, name, notebooks
    )


def _beside_notebook(root: str, name: str, notebooks: Collection[str]) -> Origin:
    """The student whose name stands beside that of a notebook; the folder's, where there is no other name."""
    stem = _COPY.sub("", PurePath(name).stem)
    for notebook in notebooks:
        stem = stem.replace(notebook, "")
    return plain_origin(stem.strip(" _-.()[]") or root)


def _date(written: str, forms: Iterable[str]) -> datetime | None:
    """A date that a platform wrote into a name, in this machine's time, which it does not name."""
    for form in forms:
        try:
            return datetime.strptime(written, form).astimezone()
        except (ValueError, OverflowError):
            continue
    return None
