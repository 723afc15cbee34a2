"""Locate the JVM's class-data archive, and decide whether a JVM may use it.

An archive (AppCDS) contains the classes of Spark, or of Kafka's broker, parsed and verified, so that a JVM starts some
seconds sooner. It is in the user's cache folder, under a name that depends on JDK, PySpark and class path. A JVM
ignores an archive that does not fit, and everything works without one. `labkit.spark.fast.archive`, or a Kafka broker
when it stops, creates archives.
"""

import hashlib
import os
import stat
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from labkit.core.extras import require
from labkit.host import durable
from labkit.host.addresses import cache_folder
from labkit.host.java import Java

MEGABYTES, SECONDS = 170, 25
"""The size of a class-data archive (AppCDS) on disk in megabytes, and about how many seconds it takes to create one."""


def spark_jars() -> Path:
    """Return the folder of Spark's jars in the installed PySpark package. Raises `MissingExtra` without PySpark."""
    require("pyspark")
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    return Path(spark.origin).parent / "jars"


def archive_path(java: Java, jars: Path | None = None) -> Path | None:
    """Return the path for the class-data archive (AppCDS) of this Java and these jars; None without a home folder."""
    folder = cache_folder()
    return None if folder is None else folder / f"classes-{_digest(java, jars or spark_jars())}.jsa"


def find_archive(java: Java, jars: Path | None = None) -> Path | None:
    """Return the path of the JVM's class-data archive (AppCDS) for this Java and these jars, or None.

    The result is None if the archive is missing or incomplete, or if other users can write to it: an archive contains
    code, so they could make the JVM run their code. `jars` are PySpark's by default.
    """
    path = archive_path(java, jars)
    return path if path is not None and _is_own(path) and _is_sealed(path) else None


def keep(path: Path, part: Path) -> None:
    """Rename `part`, a class-data archive (AppCDS) that a JVM wrote at its exit, to `path`; mark it as complete."""
    # The mode first, so that other users can never write to an archive under its final name.
    part.chmod(0o600)
    part.replace(path)
    seal(path)


USED = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""JVM options that suppress warnings about a class-data archive that does not fit, which the JVM ignores anyway."""


def seal(path: Path) -> None:
    """Mark an archive as complete: write its size and modification time to a small file next to it.

    If the archive changes later, it no longer matches that file, and `find_archive` rejects it.
    """
    durable.replace(_seal_of(path), _state(path))


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
    try:
        # `lstat`, because a link in our own folder may lead to another user's file.
        status = path.lstat()
    except OSError:
        return False
    private = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(status.st_mode) and private and status.st_uid == os.geteuid() and os.access(path, os.R_OK)


def _digest(java: Java, jars: Path) -> str:
    # Everything on which a class-data archive depends: the JVM, PySpark's version and every jar.
    parts = [str(java.path.resolve()), java.release, str(java.path.stat().st_mtime_ns), version("pyspark"), str(jars)]
    for jar in sorted(os.scandir(jars), key=lambda entry: entry.name):
        status = jar.stat()
        parts.append(f"{jar.name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
