"""Reads notebooks from a ZIP archive that may be malformed or hostile.

labkit writes no file to a path that the archive states, and reads each entry only up to a limit. If it refuses an
entry, it reports why and still reads the others. One student's files never use up another's limits.
"""

import stat
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from io import BytesIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO

from labkit.core.errors import InvalidInput
from labkit.grading.reading import MOST_BYTES, may_be_notebook

MOST_ENTRIES = 20_000
"""The maximum of files that may be notebooks, at the top level of an archive, and in each of its top-level folders."""
MOST_EACH = 512 * 1024**2
"""The largest number of bytes read from one top-level folder of an archive, or from an archive inside the archive."""
MOST_RATIO = 200
"""The largest compression ratio of an entry; a higher one marks a ZIP bomb. It applies above one megabyte."""
MOST_DEPTH = 12
"""The largest number of path components that an entry may have."""
MOST_WITHIN = 64 * 1024**2
"""The largest size in bytes of an archive inside another; archives nested deeper are not opened."""
MOST_DIRECTORY = 16 * 1024**2
"""The largest size in bytes of an inner archive's central directory, because it is held in memory."""
_END = b"PK\x05\x06"
_END_BYTES = 22 + 0xFFFF
_UTF8 = 0x800
_READING = (zipfile.BadZipFile, OSError, NotImplementedError, ValueError, EOFError, RuntimeError)


@dataclass(frozen=True)
class Entry:
    """One file of a ZIP archive of submissions: path, date, and its bytes or the reason why they were not read."""

    path: PurePosixPath
    when: datetime
    """The date that the archive states for the file.

    A file of an inner archive has that archive's date, because a student may have set the dates inside.
    """
    content: bytes = b""
    problem: str | None = None
    place: PurePosixPath | None = None
    """The path of the inner archive that held the file, or None if the file is directly in this archive."""
    changed: datetime | None = None
    """The modification date that the file itself states, which its author may have set."""


class Archive:
    """An open ZIP archive of submissions."""

    def __init__(self, file: zipfile.ZipFile, name: str, *, within: bool) -> None:
        self.name, self._file, self._within = name, file, within
        listed = [(_path(member), member) for member in file.infolist() if not member.is_dir()]
        self._members = [(path, member) for path, member in listed if not _hidden(path)]
        self._read: Counter[str] = Counter()

    def paths(self) -> list[PurePosixPath]:
        """Return the paths of all files in the archive except hidden ones, such as those below `.git`."""
        return [_inside(path) for path, _ in self._members]

    def beginning(self, path: PurePosixPath, most: int) -> bytes:
        """Return the content of the file at `path`, or no bytes if it is unreadable or longer than `most` bytes."""
        for named, member in self._members:
            if _inside(named) == path and _refused(member, path, most) is None:
                try:
                    with self._file.open(member) as file:
                        return file.read(most)
                except Exception:  # noqa: BLE001 - each method of compression has errors of its own
                    return b""
        return b""

    def others(self) -> Iterator[tuple[PurePosixPath, datetime]]:
        """Yield the path and the date of each file that is neither an archive nor possibly a notebook."""
        for path, member in self._members:
            if not may_be_notebook(path.name) and path.suffix.lower() != ".zip":
                yield _inside(path), _changed(member)

    def entries(self) -> Iterator[Entry]:
        """Yield each file that may be a notebook, in this archive and in ZIP archives inside it.

        An entry has the file's content, or the reason why the file was not read. Raises `InvalidInput` if the top level
        of this archive has more than `MOST_ENTRIES` such files.
        """
        wanted = [
            (path, member) for path, member in self._members if may_be_notebook(path.name) or self._is_archive(path)
        ]
        counts = Counter(_owner(path) for path, _ in wanted)
        if counts[""] > MOST_ENTRIES:
            raise InvalidInput(
                f"{self.name}: the top level of the archive has {counts['']:,} files, but at most {MOST_ENTRIES:,} are "
                "allowed; split the archive."
            )
        for path, member in wanted:
            if counts[_owner(path)] <= MOST_ENTRIES:
                yield from self._entry(path, member)
        if self._within:
            too_deep = (path for path, _ in self._members if path.suffix.lower() == ".zip")
            why = "The file is an archive within an archive, which labkit does not open."
            yield from (Entry(_inside(path), NEVER, problem=why) for path in islice(too_deep, 1))
        for folder, count in counts.items():
            if folder and count > MOST_ENTRIES:
                problem = (
                    f"This submission has {count:,} files, but at most {MOST_ENTRIES:,} are allowed; submit fewer."
                )
                when = max(_changed(member) for path, member in wanted if _owner(path) == folder)
                yield Entry(PurePosixPath(folder, "all"), when, problem=problem)

    def _is_archive(self, path: PurePosixPath) -> bool:
        return path.suffix.lower() == ".zip" and not self._within

    def _entry(self, path: PurePosixPath, member: zipfile.ZipInfo) -> Iterator[Entry]:
        when = _changed(member)
        most = MOST_WITHIN if self._is_archive(path) else MOST_BYTES
        problem = _refused(member, path, most)
        if problem is not None:
            yield Entry(_inside(path), when, problem=problem)
            return
        try:
            with self._file.open(member) as file:
                content = file.read(most + 1)
        except _READING as error:
            why = f"The file cannot be unpacked from the archive ({error})."
            yield Entry(path, when, problem=why)
            return
        except Exception as error:  # noqa: BLE001 - each method of compression has errors of its own
            yield Entry(path, when, problem=f"The file is damaged ({type(error).__name__}).")
            return
        owner = "" if self._within else _owner(path)
        self._read[owner] += len(content)
        if (self._within or owner) and self._read[owner] > MOST_EACH:
            why = f"The student's files in this archive exceed {MOST_EACH // 1024**2:,} MB together; submit fewer."
            yield Entry(path, when, problem=why)
        elif self._is_archive(path):
            yield from _nested(content, path, when)
        else:
            yield Entry(path, when, content, changed=when)


@contextmanager
def opened(source: Path | IO[bytes], name: str, *, within: bool = False) -> Iterator[Archive]:
    """Open a ZIP archive for a `with` block. Raises `InvalidInput` if it cannot be read.

    `name` is for messages. If `within`, the archive lies inside another archive, so stricter limits apply.
    """
    try:
        if not isinstance(source, Path) and _directory_bytes(source) > MOST_DIRECTORY:
            raise InvalidInput(
                f"{name}: the archive's list of contents is longer than {MOST_DIRECTORY // 1024**2} MB; submit "
                "fewer files."
            )
        with zipfile.ZipFile(source) as file:
            yield Archive(file, name, within=within)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError, MemoryError) as error:
        raise InvalidInput(
            f"{name}: this is not a ZIP archive that can be read ({error}); download it again."
        ) from None


def _nested(content: bytes, path: PurePosixPath, when: datetime) -> Iterator[Entry]:
    """Yield the files of a ZIP archive that lies in another one.

    `path` is the inner archive's path in the outer one, `content` its bytes, and `when` its date, which all files get.
    """
    count = 0
    try:
        with opened(BytesIO(content), path.name, within=True) as archive:
            for entry in archive.entries():
                count += 1
                yield replace(entry, path=path / entry.path, when=when, place=path)
    except InvalidInput as error:
        yield Entry(path, when, problem=str(error), place=path)
        return
    if count == 0:
        yield Entry(path, when, problem="The archive contains no notebook.", place=path)


NEVER = datetime.fromtimestamp(0).astimezone()
"""The date of a file that states none: the beginning of 1970, so that every other file is newer."""


def _directory_bytes(file: IO[bytes]) -> int:
    """Return the length in bytes of a ZIP archive's central directory, or 0 if the archive has no valid end record."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(_END)
    return int.from_bytes(tail[at + 12 : at + 16], "little") if at >= 0 else 0


def _path(member: zipfile.ZipInfo) -> PurePosixPath:
    name = member.filename
    if not member.flag_bits & _UTF8:
        # Many programs write UTF-8 without setting this flag, so Python has decoded the name as CP437.
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return PurePosixPath(name.replace("\\", "/"))


def _hidden(path: PurePosixPath) -> bool:
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.parts)


def _owner(path: PurePosixPath) -> str:
    """Return the top-level folder of a path in an archive, or "". Each such folder has the files of one student."""
    inside = _inside(path)
    return inside.parts[0] if len(inside.parts) > 1 else ""


def _inside(path: PurePosixPath) -> PurePosixPath:
    # These parts would lead out of the archive.
    return PurePosixPath(*(part for part in path.parts if part not in {"..", "/"}))


def _changed(member: zipfile.ZipInfo) -> datetime:
    # Read as local time, because ZIP archives store no time zone.
    try:
        return datetime(*member.date_time).astimezone()
    except (ValueError, OverflowError):
        return NEVER


def _refused(member: zipfile.ZipInfo, path: PurePosixPath, most: int) -> str | None:
    """Return a sentence on why a ZIP entry must not be read, or None if it may; `most` is the largest size in bytes."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    size, packed = member.file_size, max(1, member.compress_size)
    reasons = (
        (path.is_absolute() or ".." in path.parts, "The file's path points outside the archive."),
        (len(path.parts) > MOST_DEPTH, f"The file is more than {MOST_DEPTH} folders deep in the archive."),
        (kind not in {0, stat.S_IFREG}, "This is a link or a device, not a file."),
        (bool(member.flag_bits & 1), "The file is encrypted; submit it without a password."),
        (size > most, f"The file is larger than {most // 1024**2} MB."),
        (
            size > max(1024**2, MOST_RATIO * packed),
            f"The file is compressed more than {MOST_RATIO} to 1, which no real notebook is.",
        ),
    )
    return next((reason for refused, reason in reasons if refused), None)
