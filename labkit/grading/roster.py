"""Reads the roster of a class (students with groups and deadlines), and finds the student of each submission.

A submission matches a student by number, account or e-mail address, and by name only if no other student can be meant.
If it matches two students, it is assigned to neither, and the instructor is asked.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.grading import tables
from labkit.grading.platforms import Platform
from labkit.grading.records import Record
from labkit.grading.rules import moment
from labkit.grading.tables import Row

_NAME = ("name", "full name", "student", "student name", "display name")
_EMAIL = ("email", "e-mail", "email address", "e-mail address", "mail")
_ID = (
    *("id number", "sis user id", "student id", "orgdefinedid", "sid", "matriculation"),
    *("sis login id", "username", "user name", "login", "account", "id", "identifier"),
)
_GROUP = ("group", "groups", "team")
_DEADLINE = ("deadline", "due", "due date")
_EXTENSION = ("extension", "extension days", "extra days")
_MOODLE = re.compile(r"\D*(\d+)")
_BY_ID = {Platform.PLAIN, Platform.BLACKBOARD, Platform.GRADESCOPE, Platform.GITHUB}
"""The platforms that identify students by the school's own numbers or names, which a roster may contain as ids."""


@dataclass(frozen=True)
class Member:
    """A student of the class, read from one line of the roster file."""

    place: str
    name: str
    ids: tuple[str, ...] = ()
    """All numbers and accounts that the school gave the student."""
    email: str = ""
    accounts: tuple[tuple[Platform, str], ...] = ()
    """The numbers and accounts that only a platform knows."""
    group: str = ""
    deadline: datetime | None = None
    extension: timedelta | None = None
    """How long after the deadline this student may hand in."""
    cells: Mapping[str, str] = field(default_factory=dict, compare=False, hash=False)
    """The cells of the roster's line by title in lower case, for exports to the platform, which repeat some of them."""

    @property
    def id(self) -> str:
        """The first of the student's ids in the roster, or the e-mail address if the roster has no id."""
        return self.ids[0] if self.ids else self.email


def read(path: Path) -> list[Member]:
    """Return the students in a roster file (CSV). Raises `InvalidInput` for an unreadable or inconsistent file."""
    # An export from Canvas also has two lines that are about no real student.
    no_students = {"Points Possible", "Student, Test"}
    rows = tables.read(path, "the roster")
    members = [_member(row) for row in rows if row.first(*_NAME).strip() not in no_students]
    if not members:
        raise InvalidInput(f"{path}: the roster is empty; add a line for each student.")
    by_id: dict[str, Member] = {}
    for member in members:
        if not (member.name or member.ids or member.email):
            raise InvalidInput(
                f"{member.place}: this line names no student; fill in at least one of the columns id, name and email."
            )
        for id_ in member.ids[:1]:
            if id_.casefold() in by_id:
                raise InvalidInput(
                    f"{member.place}: the id {id_} is also in {by_id[id_.casefold()].place}; give each student "
                    "a unique id."
                )
            by_id[id_.casefold()] = member
    return members


def _member(row: Row) -> Member:
    canvas = "sis login id" in row.cells or "sis user id" in row.cells
    moodle = "identifier" in row.cells and "full name" in row.cells
    accounts = [
        (platform, row.cells[title]) for platform, title in _account_titles(canvas=canvas) if row.cells.get(title)
    ]
    used = {"id"} if canvas else set()
    if moodle and (number := _MOODLE.fullmatch(row.cells["identifier"])):
        accounts.append((Platform.MOODLE, str(int(number[1]))))
        used.add("identifier")
    ids = [row.cells[title] for title in _ID if title not in used and row.cells.get(title)]
    name = row.first(*_NAME) or " ".join(filter(None, (row.first("first name"), row.first("last name", "surname"))))
    return Member(
        row.place,
        _flipped(name),
        tuple(dict.fromkeys(one.lstrip("#") for one in ids)),
        row.first(*_EMAIL),
        tuple(accounts),
        row.first(*_GROUP),
        moment(due, row.place).astimezone() if (due := row.first(*_DEADLINE)) else None,
        _extension(row),
        row.cells,
    )


def _account_titles(*, canvas: bool) -> Iterable[tuple[Platform, str]]:
    for platform in Platform:
        yield platform, platform.value
        yield platform, f"{platform.value} id"
    yield Platform.GITHUB, "github_username"
    if canvas:
        yield Platform.CANVAS, "id"


def _flipped(name: str) -> str:
    """Return `Ada Lovelace` for the name `Lovelace, Ada`, and a name without a comma unchanged."""
    last, comma, first = name.partition(",")
    return f"{first.strip()} {last.strip()}" if comma and first.strip() else name


def _extension(row: Row) -> timedelta | None:
    written = row.first(*_EXTENSION)
    if not written:
        return None
    try:
        days = float(written.replace(",", ".").removesuffix("days").removesuffix("d"))
        if not 0 <= days <= 3650:
            raise ValueError
        return timedelta(days=days)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{row.place}: {written} is not a number of days; write it as 3 or 0.5.") from None


def same_name(name: str) -> str:
    """Return a name normalised for comparison: Unicode form, case and extra blanks do not matter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


@dataclass(frozen=True)
class Matches:
    """The result of matching submissions with the roster: each student's submissions, and open questions."""

    owners: Mapping[int, Sequence[str]]
    """For each student, by index in the roster, the keys of the submissions made alone or in a group."""
    doubts: Sequence[str]


def match(members: Sequence[Member], records: Sequence[Record]) -> Matches:
    """Find the students who own each submission; a group's submission belongs to all members of the group."""
    by_key: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_key[record.key].append(record)
    members_of: dict[str, list[int]] = {}
    doubts: list[str] = []
    for key, key_records in by_key.items():
        numbers = _by_account(members, key_records[0])
        if len(numbers) > max(1, len(key_records[0].people)):
            lines = ", ".join(members[number].place for number in numbers)
            doubts.append(
                f"{key_records[0].student} ({key}) could be any of {lines}; give each student unique ids in the roster."
            )
        elif numbers := numbers or _by_group(members, key_records[0]):
            members_of[key] = numbers
    doubts += _by_name(members, by_key, members_of)
    groups: dict[str, list[int]] = defaultdict(list)
    for number, member in enumerate(members):
        if member.group:
            groups[same_name(member.group)].append(number)
    owners: dict[int, list[str]] = defaultdict(list)
    for key, numbers in members_of.items():
        indices = {other for number in numbers for other in groups.get(same_name(members[number].group), [number])}
        for number in sorted({*numbers, *indices}):
            owners[number].append(key)
    return Matches(owners, doubts)


def _by_account(members: Sequence[Member], record: Record) -> list[int]:
    """Return the indices of the students whose id, account or e-mail address a submission (`record`) states."""
    ids = {person.id.casefold() for person in record.people if person.id}
    emails = {person.email.casefold() for person in record.people if person.email}
    platform = Platform(record.platform)
    if platform in _BY_ID:
        ids.add((record.account or record.student).casefold())
        emails.add((record.account or record.student).casefold())
    account = (platform, record.account.casefold())
    return [
        number
        for number, member in enumerate(members)
        if ids & {one.casefold() for one in member.ids}
        or (member.email and member.email.casefold() in emails)
        or account in {(kind, one.casefold()) for kind, one in member.accounts}
    ]


def _by_group(members: Sequence[Member], record: Record) -> list[int]:
    name = same_name(record.student)
    return [number for number, member in enumerate(members) if member.group and same_name(member.group) == name]


def _by_name(
    members: Sequence[Member], by_key: Mapping[str, Sequence[Record]], members_of: dict[str, list[int]]
) -> list[str]:
    """Assign each submission without an owner to the roster member of the same name, if exactly one has that name.

    `members_of` maps keys of submissions to indices of members. The new owners are added to it. Returns a question for
    the instructor about each name whose owner is uncertain.
    """
    doubts = []
    named: dict[str, list[int]] = defaultdict(list)
    for number, member in enumerate(members):
        named[same_name(member.name)].append(number)
    matched = {number for numbers in members_of.values() for number in numbers}
    left: dict[str, list[str]] = defaultdict(list)
    for key, records in by_key.items():
        if key not in members_of:
            left[same_name(records[0].student)].append(key)
    for name, keys in sorted(left.items()):
        numbers = named.get(name, [])
        if not name or not numbers:
            continue
        notebooks = [record.notebook for key in keys for record in by_key[key]]
        shown = by_key[keys[0]][0].student
        if len(numbers) > 1 or len(set(notebooks)) < len(notebooks):
            doubts.append(
                f"{shown}: {len(numbers)} students in the roster and {len(keys)} submissions "
                f"({', '.join(keys)}) have this name; add the platform's number or account to the roster."
            )
        elif numbers[0] in matched:
            doubts.append(
                f"{shown} ({', '.join(keys)}) has the same name as a student in the roster who submitted from "
                "another account; if it is the same person, add this account to the roster."
            )
        else:
            for key in keys:
                members_of[key] = numbers
    return doubts
