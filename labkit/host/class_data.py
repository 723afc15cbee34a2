"""Where the JVM's class-data archive lies, and whether a JVM may be pointed at it.

An archive (AppCDS) holds the classes of Spark, or of Kafka's broker, parsed and verified, so that a JVM starts some
seconds sooner. It lies in
the user's cache folder, by JDK, PySpark and class path; a JVM that it does not fit leaves it alone, and everything
works without one. This module must not make an archive: `labkit.spark.fast.archive` and a broker that ends do.
"""

import hashlib
import os
import stat
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from labkit.host.addresses import cache_folder
from labkit.host.java import Java

MEGABYTES, SECONDS = 170, 25
"""What an archive takes on the disk, and about how long making it takes, once."""


def spark_jars() -> Path:
    """The folder of PySpark's own jars."""
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    return Path(spark.origin).parent / "jars"


def archive_path(java: Java, jars: Path | None = None) -> Path | None:
    """The place of the archive of this Java and these jars (PySpark's own, if none are named), there or not."""
    folder = cache_folder()
    return None if folder is None else folder / f"classes-{_digest(java, jars or spark_jars())}.jsa"


def find_archive(java: Java, jars: Path | None = None) -> Path | None:
    """The archive that a JVM may be pointed at: whole, and in nobody's hands but the user's own."""
    path = archive_path(java, jars)
    return path if path is not None and _is_own(path) and _is_sealed(path) else None


def keep(path: Path, part: Path) -> None:
    """Makes what a JVM wrote to `part` when it ended the archive at `path`, whole and the user's own."""
    # The mode is right before the name is: under its real name an archive is never open
    # to others, not even for a moment.
    part.chmod(0o600)
    part.replace(path)
    seal(path)


USED = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""A JVM leaves an archive alone that does not fit it; with these, without a word about it."""


def seal(path: Path) -> None:
    """Says, after everything else, that this archive is whole. One that is written to later is not used any more."""
    # The seal holds the size and the time of the archive as they are now: whoever
    # writes to it later breaks the seal.
    unfinished = _seal_of(path).with_suffix(".part")
    unfinished.write_text(_state(path), encoding="ascii")
    unfinished.replace(_seal_of(path))


def _is_sealed(path: Path) -> bool:
    try:
        return _seal_of(path).read_text(encoding="ascii") == _state(path)
    except (OSError, UnicodeDecodeError):
        return False


def _seal_of(path: Path) -> Path:
    return path.with_suffix(".seal")


def _state(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _is_own(path: Path) -> bool:
    """An archive is code: one that somebody else could have written is not used."""
    try:
        # `lstat`, because a link in a folder of ours may lead to a file of somebody
        # else's.
        status = path.lstat()
    except OSError:
        return False
    private = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(status.st_mode) and private and status.st_uid == os.geteuid() and os.access(path, os.R_OK)


def _digest(java: Java, jars: Path) -> str:
    """Changes with everything that a JVM compares before it uses an archive: itself, and every jar."""
    parts = [str(java.path.resolve()), java.release, str(java.path.stat().st_mtime_ns), version("pyspark"), str(jars)]
    for jar in sorted(os.scandir(jars), key=lambda entry: entry.name):
        status = jar.stat()
        parts.append(f"{jar.name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
