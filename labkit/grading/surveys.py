"""Derives facts from all file names of a download together, such as where a student's name begins in them.

Platforms add lists and notes to the files. labkit trusts only those at the top level, because students can create
files in deeper folders.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePath

import yaml

from labkit.grading.platforms import BLACKBOARD, NO_CONTEXT, Context, Person, platform_origin, shown

METADATA = "submission_metadata.yml"
"""The file name of Gradescope's list of submissions."""
MOST_BESIDE = 64 * 1024**2
"""The largest size in bytes of a list or note from a platform that is read."""
_NOTE = re.compile(r"^Name:\s*(?P<name>.+?)\s*\((?P<id>[^()\r\n]+)\)\s*$", re.MULTILINE)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def survey(
    paths: Iterable[PurePath],
    repositories: Iterable[str] = (),
    above: str = "",
    read: Callable[[PurePath], bytes] = lambda _: b"",
) -> Context:
    """Return facts that only all files of an upload together show, such as the platform that it comes from.

    `paths` are the files in a folder or archive, and `above` is the name of this folder or archive. `read` returns the
    first bytes of a file (at most `MOST_BESIDE`). `repositories` are the names of folders that are Git clones.
    """
    listed, cloned = list(paths), set(repositories)
    tops = {path.parts[0] for path in listed}
    inner = [PurePath(*path.parts[1:]) for path in listed if len(path.parts) > 1]
    wrapped = len(tops) == 1 and len(inner) == len(listed) and not _shaped(listed)
    wrapped = wrapped and (_shaped(inner) or bool(cloned & {_stem(path) for path in inner}))
    if wrapped:
        (top,) = tops
        listed = inner
        context = _context(listed, cloned, top, lambda path: read(top / path))
    else:
        context = _context(listed, cloned, above, read)
    return replace(context, wrapped=wrapped, shaped=wrapped or _shaped(listed))


def classroom(paths: Iterable[PurePath], above: str) -> list[str]:
    """Return the names of the repositories that GitHub Classroom has cloned; the list is empty if there are none.

    `paths` are the files in a folder or archive, and `above` is its name. Copied or zipped clones have no `.git`, so
    labkit recognises clones by their names: `assignment-user` in a folder `assignment-submissions`. This folder is
    `above` itself, or the only folder in `above`.
    """
    listed = [path for path in paths if len(path.parts) > 1 or path.suffix.lower() == ".zip"]
    names = sorted({_stem(path) for path in listed})
    assignment = above.removesuffix("-submissions")
    if assignment != above and all(name.startswith(f"{assignment}-") for name in names):
        return names
    tops = {path.parts[0] for path in listed if len(path.parts) > 1}
    if len(tops) != 1 or not all(len(path.parts) > 1 for path in listed) or above.endswith("-submissions"):
        return []
    (top,) = tops
    inner = (PurePath(*path.parts[1:]) for path in listed)
    return classroom(inner, top) if top.endswith("-submissions") else []


def _stem(path: PurePath) -> str:
    return path.parts[0] if len(path.parts) > 1 else path.stem


def _shaped(paths: Iterable[PurePath]) -> bool:
    """Return whether a top-level file or folder has a name in the format of a learning platform."""
    return any(
        path == PurePath(METADATA) or platform_origin(path.parts[0], NO_CONTEXT, folder=len(path.parts) > 1) is not None
        for path in paths
    )


def _context(
    paths: Sequence[PurePath], repositories: Iterable[str], above: str, read: Callable[[PurePath], bytes]
) -> Context:
    files = [path for path in paths if len(path.parts) == 1]
    attempts = [(parts, path) for path in files if (parts := BLACKBOARD.fullmatch(path.name))]
    owners = {parts["who"]: _noted(read(path)) for parts, path in attempts if parts["rest"] == ".txt"}
    submitters, dates = _submitters(read(PurePath(METADATA))) if PurePath(METADATA) in files else ({}, {})
    # A name's last words may be a student's account, so they never count as common to all names.
    words = [parts["who"].split("_")[:-1] for parts, _ in attempts]
    return Context(
        blackboard=len(os.path.commonprefix(words)),  # noqa: RUF071 - of lists of words, not of paths
        owners={key: person for key, person in owners.items() if person is not None},
        submitters=submitters,
        dates=dates,
        users=_users(sorted(repositories), above),
    )


def _noted(content: bytes) -> Person | None:
    """Return the person named in a text file that Blackboard has added to a submission, or None if there is no name."""
    note = _NOTE.search(content[:10_000].decode("utf-8-sig", "replace"))
    return None if note is None else Person(note["name"], note["id"])


def _users(repositories: Sequence[str], above: str) -> dict[str, str]:
    """Return a dict from repository to GitHub user. GitHub Classroom names a repository `assignment-user`.

    If `above`, the folder of the repositories, is called `assignment-submissions`, it states the assignment's name.
    Otherwise that name is the common beginning of the repositories' names. For a single repository, the whole name
    counts as the user.
    """
    assignment = above.removesuffix("-submissions")
    if assignment == above or not all(name.startswith(f"{assignment}-") for name in repositories):
        if len(repositories) < 2:
            return {name: name for name in repositories}
        common = os.path.commonprefix(repositories)  # noqa: RUF071 - of names, not of paths
        assignment = common[: common.rfind("-")] if "-" in common else ""
    begin = len(assignment) + 1 if assignment else 0
    return {name: name[begin:] or name for name in repositories}


def _submitters(content: bytes) -> tuple[dict[str, tuple[Person, ...]], dict[str, datetime]]:
    """Parse Gradescope's list of submissions; return a dict from folder to authors and a dict from folder to date.

    Both are empty if the list cannot be parsed.
    """
    if len(content) > MOST_BESIDE:
        return {}, {}
    try:
        listed = yaml.load(content, Loader=_LOADER)  # noqa: S506 - one of the two safe ones
    except (yaml.YAMLError, ValueError, RecursionError, UnicodeDecodeError):
        return {}, {}
    people, dates = {}, {}
    for folder, entry in listed.items() if isinstance(listed, dict) else ():
        if not isinstance(entry, dict) or not isinstance(folder, str):
            continue
        several = entry.get(":submitters")
        each = several if isinstance(several, list) else []
        people[folder] = tuple(_submitter(one) for one in each if isinstance(one, dict))
        created = entry.get(":created_at")
        if isinstance(created, datetime):
            dates[folder] = created if created.tzinfo is not None else created.astimezone()
    return people, dates


def _submitter(entry: Mapping[object, object]) -> Person:
    words = (entry.get(key) for key in (":name", ":sid", ":email"))
    return Person(*("" if word is None else shown(str(word)) for word in words))
