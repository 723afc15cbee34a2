"""Notebooks out of a ZIP archive that anybody may have made: nothing is unpacked by the names that it holds.

Entries are read with a limit and written under names of our own, so that no path in the archive matters. What is
refused is named with the reason, and the rest is read. This module must not look into notebooks.
"""

import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO

from labkit.core.errors import InvalidInput
from labkit.grading.reading import MOST_BYTES

MOST_ENTRIES = 20_000
MOST_TOTAL = 1024**3
"""Bytes that are read out of one archive in all."""
MOST_RATIO = 200
"""By how much an entry of more than a megabyte may be compressed."""
MOST_DEPTH = 12
"""Folders within folders."""
MOST_WITHIN = 64 * 1024**2
"""Bytes of an archive within an archive; deeper ones are not opened."""


@dataclass(frozen=True)
class Entry:
    """A file in an archive: where it says it lies, when it was changed, and its bytes or why they were not read."""

    path: PurePosixPath
    when: datetime
    content: bytes = b""
    problem: str | None = None


def entries(path: Path) -> Iterator[Entry]:
    """Every file of an archive, and of the archives in it. Raises `InvalidInput` when it is none or has too much."""
    yield from _entries(path, path.name, PurePosixPath(), [0], within=False)


def _entries(
    source: Path | IO[bytes],
    name: str,
    above: PurePosixPath,
    total: list[int],
    *,
    within: bool,
) -> Iterator[Entry]:
    try:
        with zipfile.ZipFile(source) as archive:
            known = archive.infolist()
            if len(known) > MOST_ENTRIES:
                raise InvalidInput(
                    f"{name}: {len(known):,} entries, and {MOST_ENTRIES:,} are allowed; split it."
                )
            for number in known:
                if not number.is_dir():
                    yield from _entry(
                        archive, number, name, above, total, within=within
                    )
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise InvalidInput(
            f"{name}: not a ZIP archive that can be read ({error}); download it again."
        ) from None


def _entry(
    archive: zipfile.ZipFile,
    known: zipfile.ZipInfo,
    name: str,
    above: PurePosixPath,
    total: list[int],
    *,
    within: bool,
) -> Iterator[Entry]:
    path = above / known.filename.replace("\\", "/")
    if any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.parts):
        return
    when = _changed(known)
    is_archive = path.suffix.lower() == ".zip" and not within
    problem = _refused(known, path, MOST_WITHIN if is_archive else MOST_BYTES)
    if problem is not None:
        yield Entry(
            PurePosixPath(*(part for part in path.parts if part not in {"..", "/"})),
            when,
            problem=problem,
        )
        return
    try:
        with archive.open(known) as file:
            content = file.read((MOST_WITHIN if is_archive else MOST_BYTES) + 1)
    except (
        zipfile.BadZipFile,
        OSError,
        NotImplementedError,
        ValueError,
        EOFError,
        RuntimeError,
    ) as error:
        yield Entry(
            path, when, problem=f"It cannot be read out of the archive ({error})."
        )
        return
    except Exception as error:  # noqa: BLE001 - each method of compression has errors of its own
        yield Entry(path, when, problem=f"It is damaged ({type(error).__name__}).")
        return
    total[0] += len(content)
    if total[0] > MOST_TOTAL:
        raise InvalidInput(
            f"{name}: more than {MOST_TOTAL // 1024**2:,} MB in all; split it."
        )
    if not is_archive:
        yield Entry(path, when, content)
        return
    try:
        yield from _entries(
            BytesIO(content), path.name, path.parent, total, within=True
        )
    except InvalidInput as error:
        yield Entry(path, when, problem=str(error))


def _changed(known: zipfile.ZipInfo) -> datetime:
    """When it says it was changed, in this machine's time, which an archive does not name; 1970 for no time at all."""
    try:
        return datetime(*known.date_time).astimezone()
    except (ValueError, OverflowError):
        return datetime.fromtimestamp(0).astimezone()


def _refused(known: zipfile.ZipInfo, path: PurePosixPath, most: int) -> str | None:
    """Why an entry is not read, in a sentence."""
    kind = stat.S_IFMT(known.external_attr >> 16)
    size, packed = known.file_size, max(1, known.compress_size)
    reasons = (
        (
            path.is_absolute() or ".." in path.parts,
            "Its path leads out of the archive.",
        ),
        (len(path.parts) > MOST_DEPTH, f"It lies more than {MOST_DEPTH} folders deep."),
        (kind not in {0, stat.S_IFREG}, "It is a link or a device, and not a file."),
        (bool(known.flag_bits & 1), "It is encrypted."),
        (size > most, f"It is larger than {most // 1024**2} MB."),
        (
            size > max(1024**2, MOST_RATIO * packed),
            f"It is compressed more than {MOST_RATIO} to 1, as no notebook is.",
        ),
    )
    return next((reason for refused, reason in reasons if refused), None)
