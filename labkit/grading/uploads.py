"""Yields every uploaded file with its owner and its date: from folders, archives and single notebooks.

Names at the top level come from the platform or the instructor and identify the owner of a file. Deeper names come from
the student and identify nobody. Dates come from the platform if it states them.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath

from labkit.core.errors import InvalidInput
from labkit.grading.archives import NEVER, Archive, Entry, opened
from labkit.grading.platforms import NO_CONTEXT, Context, Origin, Platform, origin, plain_origin, platform_origin, text
from labkit.grading.reading import MOST_BYTES, may_be_notebook, says_notebook
from labkit.grading.surveys import MOST_BESIDE, classroom, survey

_HANDED_OUT = "notebooks"
"""The name of the folder with the notebooks in the lab's copy for learners."""


@dataclass(frozen=True)
class Upload:
    """One uploaded file: its owner, its date, and its bytes or the reason why they were not read."""

    origin: Origin
    file: str
    """The file's location as shown to a person."""
    when: datetime
    content: bytes = b""
    problem: str = ""
    """The reason why the file was not read; empty if it was."""
    changed: datetime = NEVER
    """The modification date of the file itself, which decides only between files of one student with the same `when`.

    The file's author may have set it.
    """
    named: bool = True
    """Whether the command line names the file's folder or archive; if not, the file counts only without another one."""
    doubt: str = ""
    """A question about the file's owner for the instructor, with the way to settle it; empty if the owner is clear."""
    other: bool = False
    """Whether the file was not read because its name is not that of a notebook."""


@dataclass(frozen=True)
class Uploads:
    """Finds the uploaded files, with their owners, in the folders and archives that the user named."""

    notebooks: Collection[str]
    """The names of the course's notebooks. In a file name such as `ada-06_sinks.ipynb`, the rest names the student."""
    skipped: Path | None = None
    """The output folder with the grades, in which nothing is a submission."""

    def of(self, place: Path) -> Iterator[Upload]:
        """Yield every file in a folder or archive, or `place` itself. Raises `InvalidInput` if it is missing."""
        check_existing(place)
        if self._is_skipped(place):
            raise InvalidInput(
                f"{text(str(place))}: this is the folder of the grades; name the folder of the submissions."
            )
        if place.is_dir():
            yield from self._in_folder(place)
        elif place.suffix.lower() == ".zip":
            yield from self._in_named_archive(place)
        else:
            named = PurePath(place.absolute().parent.name, place.name)
            yield _read(place, origin(named, self.notebooks), text(place.name))

    def _is_skipped(self, path: Path) -> bool:
        return self.skipped is not None and self.skipped.exists() and path.samefile(self.skipped)

    def _in_folder(self, folder: Path) -> Iterator[Upload]:
        walk = _Walk(folder, self._is_skipped)
        above = folder.absolute().name
        names = survey(walk.files, walk.repositories or classroom(walk.files, above), above, walk.beginning)
        one = self._of_one(folder.absolute().name, walk.files, folder=True)
        for inside, why in walk.unreadable:
            owner = one or self._origin(folder, inside / "unreadable", names)
            yield Upload(owner, text(str(inside)), owner.when or _modified(folder / inside), problem=why)
        for inside in walk.files:
            path = folder / inside
            owner = one or self._origin(folder, inside, names)
            if path.is_symlink() or not path.is_file():
                why = "This is a link or a special file, which labkit does not read."
                yield Upload(owner, text(str(inside)), owner.when or _modified(path), problem=why)
            elif path.suffix.lower() == ".zip":
                depth = len(inside.parts) - names.wrapped
                own = one or depth > 1 or owner.platform is not Platform.PLAIN
                yield from self._in_nested_archive(path, inside, owner, own=bool(own))
            elif may_be_notebook(path.name):
                yield _read(path, owner, text(str(inside)))
            elif not _is_platforms(inside, owner, names):
                yield Upload(owner, text(str(inside)), owner.when or _modified(path), other=True)

    def _origin(self, folder: Path, inside: PurePath, names: Context) -> Origin:
        return origin(PurePath(folder.absolute().name or "in") / inside, self.notebooks, names)

    def _of_one(self, name: str, paths: Iterable[PurePath], *, folder: bool) -> Origin | None:
        """Return the student who owns all files of a folder or archive, or None if they may belong to several students.

        They belong to one student if `name`, the name of the folder or archive, has a learning platform's format, or if
        they include a notebook in a folder `notebooks`, as in the learners' copy of the lab.
        """
        shaped = platform_origin(name, NO_CONTEXT, folder=folder)
        if shaped is not None:
            return shaped
        for path in paths:
            if len(path.parts) == 2 and path.parts[0] == _HANDED_OUT and path.name.startswith(tuple(self.notebooks)):
                return plain_origin(name if folder else PurePath(name).stem)
        return None

    def _in_nested_archive(self, path: Path, inside: PurePath, owner: Origin, *, own: bool) -> Iterator[Upload]:
        """Yield the files of an archive that lies in a folder.

        If `own`, all of them belong to `owner`. Otherwise the archive may be an instructor's download of the work of
        many students.
        """
        shown = text(str(inside))
        when = owner.when or _modified(path)
        try:
            with opened(path, shown) as archive:
                inner = survey(archive.paths(), read=_beginning(archive))
                if own or not _is_download(archive.paths(), inner):
                    yield from _as_one(archive, shown, owner, when)
                else:
                    yield from self._as_download(archive, path, inner, shown, named=False)
        except InvalidInput as error:
            yield Upload(owner, shown, when, problem=str(error))

    def _in_named_archive(self, path: Path) -> Iterator[Upload]:
        """Yield the files of a ZIP archive that the user named: the download of a class, or one student's files."""
        shown, stem = text(path.name), plain_origin(path.stem)
        try:
            with opened(path, shown) as archive:
                clones = classroom(archive.paths(), path.stem)
                inner = survey(archive.paths(), clones, path.stem, _beginning(archive))
                of_one = self._of_one(path.name, archive.paths(), folder=False)
                one = _only_folder(archive.paths())
                loose = self._names_nobody(archive.paths(), inner, path.stem)
                if of_one is not None:
                    when = of_one.when or _modified(path)
                    yield from _as_one(archive, shown, of_one, when)
                elif (one or loose) and not _is_download(archive.paths(), inner):
                    doubt = (_ONE_FOLDER if one else _LOOSE).format(file=shown, folder=text(one), student=stem.shown)
                    for upload in _as_one(archive, shown, stem, _modified(path)):
                        yield replace(upload, doubt="" if one == path.stem else doubt)
                else:
                    yield from self._as_download(archive, path, inner, shown)
        except InvalidInput as error:
            yield Upload(stem, shown, _modified(path), problem=str(error))

    def _names_nobody(self, paths: Iterable[PurePath], inner: Context, stem: str) -> bool:
        """Return whether an archive called `stem` has notebooks, but no name of a student in any of their paths."""
        owners = {
            origin(PurePath(stem) / path, self.notebooks, inner).key for path in paths if says_notebook(path.name)
        }
        return owners == {plain_origin(stem).key}

    def _as_download(
        self, archive: Archive, path: Path, inner: Context, shown: str, *, named: bool = True
    ) -> Iterator[Upload]:
        """Yield the files of an archive of many students; the path of each file states the owner.

        labkit believes the dates inside only if a platform made the archive: the command line names it (`named`), and
        its names have the platform's format.
        """

        def dated(owner: Origin, stated: datetime) -> tuple[Origin, datetime]:
            if named and owner.platform is not Platform.PLAIN:
                return owner, stated
            return replace(owner, dated=True, dated_by=shown), _modified(path)

        for entry in archive.entries():
            place = PurePath(path.stem) / (entry.place or entry.path)
            owner = origin(place, self.notebooks, inner)
            stated = owner.when or entry.when
            owner, when = dated(owner, stated)
            upload = _unpacked(entry, owner, shown, when)
            # If all files have the archive's date, the date inside still tells a student's newest file.
            yield replace(upload, changed=stated if owner.dated_by else upload.changed, named=named)
        for inside, changed in archive.others():
            owner = origin(PurePath(path.stem) / inside, self.notebooks, inner)
            if not _is_platforms(inside, owner, inner):
                owner, when = dated(owner, owner.when or changed)
                yield Upload(owner, f"{shown}/{text(str(inside))}", when, other=True)


def check_existing(place: Path) -> None:
    """Raise `InvalidInput` if `place` does not exist or is a symbolic link."""
    if place.is_symlink() or not place.exists():
        raise InvalidInput(
            f"{text(str(place))}: there is no such file or folder, or it is a link; name a file or folder, not a link."
        )


_ONE_FOLDER = (
    "{file} contains a single folder, {folder}, so labkit takes it as the submission of one student, "
    "{student}; if it is a whole class, unpack the archive and name the unpacked folder."
)
_LOOSE = (
    "{file} contains loose notebooks, and no name in it states a student, so labkit takes it as the submission of one "
    "student, {student}; if they belong to several, put each student's notebooks into a folder with the student's name."
)


def _as_one(archive: Archive, shown: str, owner: Origin, when: datetime) -> Iterator[Upload]:
    """Yield the files of one student's archive, all with the date `when`, because students can set the dates inside."""
    count = 0
    for entry in archive.entries():
        count += 1
        yield _unpacked(entry, owner, shown, when)
    for inside, _ in archive.others():
        count += 1
        yield Upload(owner, f"{shown}/{text(str(inside))}", when, other=True)
    if count == 0:
        yield Upload(owner, shown, when, other=True)


def _unpacked(entry: Entry, owner: Origin, shown: str, when: datetime) -> Upload:
    file = f"{shown}/{text(str(entry.path))}"
    changed = entry.changed or NEVER
    return Upload(owner, file, when, entry.content, entry.problem or "", changed)


def _read(path: Path, owner: Origin, shown: str) -> Upload:
    when = owner.when or _modified(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)  # one byte too many shows that the file is too large to grade
    except OSError as error:
        why = f"The file cannot be read ({error.strerror}); correct its permissions and run the same command again."
        return Upload(owner, shown, when, problem=why)
    return Upload(owner, shown, when, content, changed=_modified(path))


def _modified(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat(follow_symlinks=False).st_mtime).astimezone()
    except (OSError, OverflowError, ValueError):
        return NEVER


def _beginning(archive: Archive) -> Callable[[PurePath], bytes]:
    return lambda path: archive.beginning(PurePosixPath(path), MOST_BESIDE)


def _is_platforms(path: PurePath, owner: Origin, names: Context) -> bool:
    """Return whether a file, such as a list of submissions, comes from the learning platform, not from a student."""
    outermost = len(path.parts) == 1 + names.wrapped
    return names.shaped and outermost and owner.platform is Platform.PLAIN


def _is_download(paths: Iterable[PurePath], names: Context) -> bool:
    """Return whether an archive is a learning platform's download, judged by the format of its file names."""
    inside = [parts for path in paths if (parts := path.parts[names.wrapped :])]
    return any(platform_origin(parts[0], names, folder=len(parts) > 1) for parts in inside)


def _only_folder(paths: Sequence[PurePath]) -> str:
    tops = {path.parts[0] for path in paths}
    deep = all(len(path.parts) > 1 for path in paths)
    return tops.pop() if len(tops) == 1 and deep else ""


class _Walk:
    """Lists all files below a folder without following links, and also the paths that cannot be read."""

    def __init__(self, folder: Path, is_skipped: Callable[[Path], bool]) -> None:
        self._folder = folder
        self.files: list[PurePath] = []
        self.unreadable: list[tuple[PurePath, str]] = []
        for parent, folders, names in os.walk(folder, onerror=self._refused):
            above = Path(parent)
            inner = [
                name
                for name in sorted(folders)
                if not name.startswith((".", "__MACOSX")) and not is_skipped(above / name)
            ]
            links = [name for name in inner if (above / name).is_symlink()]  # listed like files
            folders[:] = [name for name in inner if name not in links]  # `os.walk` enters only these
            self.files += [
                (above / name).relative_to(folder) for name in sorted([*names, *links]) if not name.startswith(".")
            ]

    def _refused(self, error: OSError) -> None:
        place = Path(error.filename or self._folder)
        if place == self._folder:
            raise InvalidInput(
                f"{text(str(place))}: the folder cannot be read ({error.strerror}); correct its permissions."
            )
        why = f"The folder cannot be read ({error.strerror}); correct its permissions and run the same command again."
        self.unreadable.append((place.relative_to(self._folder), why))

    @cached_property
    def repositories(self) -> list[str]:
        """The names of folders that are Git clones: top-level folders, or folders in the only top-level folder."""
        tops = {path.parts[0] for path in self.files if len(path.parts) > 1}
        clones = [name for name in sorted(tops) if (self._folder / name / ".git").exists()]
        if clones or len(tops) != 1:
            return clones
        (top,) = tops
        inner = {path.parts[1] for path in self.files if len(path.parts) > 2}
        return [name for name in sorted(inner) if (self._folder / top / name / ".git").exists()]

    def beginning(self, path: PurePath) -> bytes:
        try:
            with (self._folder / path).open("rb") as file:
                return file.read(MOST_BESIDE)
        except OSError:
            return b""
