"""Examine this machine and report, as data, whether labkit can run here and what to do if it cannot.

The examination changes nothing and does not start Spark.
"""

import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from labkit.core.errors import InvalidInput, LabError, ServiceUnavailable
from labkit.core.extras import EXTRAS, is_installed, missing_extra
from labkit.host.class_data import MEGABYTES, SECONDS, find_archive
from labkit.host.fast_start import NAMES, VARIABLE, fast_start
from labkit.host.java import REMEDY as JAVA_REMEDY
from labkit.host.java import find_java
from labkit.host.servers import SERVICES, service
from labkit.host.syscalls.support import supported

GIGABYTE = 10**9
MEMORY_NEEDED = 1.5 * GIGABYTE
"""The free memory in bytes that a run needs: one Spark driver with its workers takes about 1.3 GB."""
DISK_NEEDED = 0.5 * GIGABYTE
"""The free disk space in bytes that runs need: one run leaves a few MB, and a class-data archive takes 170 MB."""
SPARK_FROM, SPARK_BELOW = (4, 2), (4, 4)
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

OK, UNAVAILABLE = 0, ServiceUnavailable.exit_code


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of `labkit doctor`: whether one part of this machine, such as Java or free memory, suffices."""

    name: str
    ok: bool
    required: bool
    detail: str
    """The result in words, such as a version or an amount."""
    remedy: str
    """What the user can do about a problem; empty if there is none."""


def examine(folder: Path | None = None) -> list[Finding]:
    """Return one result for each part of this machine that labkit needs, from the Python version to free memory.

    `folder` is where runs would be stored (default: the working folder).
    """
    folder = Path.cwd() if folder is None else folder
    return [
        _python(),
        # The extra `lines` names the lines that make system calls, which only Linux can watch.
        *(_extra(name) for name in EXTRAS if name != "lines" or sys.platform == "linux"),
        _grader(),
        _java(),
        _pyspark(),
        _archive(),
        _fast_start(),
        _memory("memory", 1, "close other programs: one Spark driver needs"),
        _memory("memory for a standby", 2, "close other programs, or run without --standby: two drivers at once need"),
        _disk(folder),
        _ports(),
        _writable("runs folder", lambda: _nearest(folder / "runs"), "make it writable, or name another with --out"),
        _writable(
            "temporary folder",
            lambda: Path(tempfile.gettempdir()),
            "make it writable, or set TMPDIR to a writable folder",
        ),
        *map(_service, SERVICES),
        _system_calls(),
        _chromium(),
    ]


def exit_code(findings: Iterable[Finding]) -> int:
    """Return the exit code of `labkit doctor`: 0 if the machine has all that labkit requires, otherwise 69."""
    return OK if all(finding.ok or not finding.required for finding in findings) else UNAVAILABLE


def find_chromium() -> Path | None:
    """Return the path of the system's Chromium, which only labkit's browser tests need; None if it is not installed."""
    paths = (shutil.which(name) for name in CHROMIUM_NAMES)
    return next((Path(path) for path in paths if path), None)


def _finding(name: str, ok: bool, detail: str, remedy: str, *, required: bool = True) -> Finding:  # noqa: FBT001
    return Finding(name, ok, required, detail, "" if ok else remedy)


def _python() -> Finding:
    read = ".".join(str(part) for part in sys.version_info[:3])
    return _finding(
        "Python", sys.version_info[:2] >= (3, 11), f"{read} ({sys.executable})", "install Python 3.11 or newer"
    )


def _extra(name: str) -> Finding:
    absent = sorted({label for package, label in EXTRAS[name].items() if not is_installed(package)})
    detail = f"missing: {', '.join(absent)}" if absent else "installed"
    return _finding(f"labkit[{name}]", not absent, detail, f"pip install 'labkit[{name}]'", required=False)


def _grader() -> Finding:
    is_there = find_spec("labkit.grading") is not None
    remedy = "needed only for `labkit grade`: pip install labkit-grading"
    return _finding("labkit-grading", is_there, "installed" if is_there else "not installed", remedy, required=False)


def _java() -> Finding:
    try:
        java = find_java()
    except ServiceUnavailable as missing:
        return _finding("Java", ok=False, detail=str(missing), remedy=JAVA_REMEDY, required=is_installed("pyspark"))
    return _finding("Java", ok=True, detail=f"{java.release} ({java.source}: {java.path})", remedy="")


def _pyspark() -> Finding:
    remedy = "pip install 'labkit[spark]'"
    try:
        read = version("pyspark")
    except PackageNotFoundError:
        return _finding("PySpark", ok=False, detail="not installed", remedy=remedy, required=False)
    major, minor, *_ = (int(part) for part in read.split(".")[:2])
    return _finding("PySpark", SPARK_FROM <= (major, minor) < SPARK_BELOW, read, remedy)


def _memory(name: str, drivers: int, remedy: str) -> Finding:
    import psutil

    available, needed = psutil.virtual_memory().available, drivers * MEMORY_NEEDED
    detail, amount = f"{available / GIGABYTE:.1f} GB available", f"about {needed / GIGABYTE:.1f} GB"
    return _finding(name, available >= needed, detail, f"{remedy} {amount}", required=drivers == 1)


def _archive() -> Finding:
    remedy = (
        f"for faster starts, run labkit doctor --prepare, which creates one (about {SECONDS} s once, {MEGABYTES} MB)"
    )
    try:
        archive = find_archive(find_java())
    except (ServiceUnavailable, PackageNotFoundError, OSError):
        archive = None
    return _finding("class-data archive", archive is not None, str(archive or "none yet"), remedy, required=False)


def _fast_start() -> Finding:
    remedy = f"unset {VARIABLE}, or set it to none or to some of {', '.join(NAMES)}"
    try:
        ok, detail = True, str(fast_start())
    except InvalidInput as unknown:
        ok, detail = False, str(unknown)
    return _finding("fast starts", ok, detail, remedy, required=False)


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(_nearest(folder)).free
    remedy = f"free {DISK_NEEDED / GIGABYTE:.1f} GB there, or work in another folder"
    return _finding("disk", free >= DISK_NEEDED, f"{free / GIGABYTE:.1f} GB free in {folder}", remedy)


def _ports() -> Finding:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            port = listener.getsockname()[1]
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                pass
    except OSError as error:
        remedy = "allow this user's processes to listen on 127.0.0.1, where Spark talks to its Python workers"
        return _finding("loopback ports", ok=False, detail=str(error), remedy=remedy)
    return _finding("loopback ports", ok=True, detail="a process can listen on 127.0.0.1 and connect to it", remedy="")


def _writable(name: str, place: Callable[[], Path], remedy: str) -> Finding:
    try:
        folder = place()
        with tempfile.NamedTemporaryFile(dir=folder, prefix="labkit-doctor-"):
            pass
    except OSError as error:
        return _finding(name, ok=False, detail=str(error), remedy=remedy)
    return _finding(name, ok=True, detail=f"{folder} is writable", remedy="")


def _nearest(folder: Path) -> Path:
    return next(place for place in (folder, *folder.absolute().parents) if place.exists())


def _service(name: str) -> Finding:
    remedy = f"needed only for --store {name}: labkit services up {name}"
    try:
        status = service(name).status()
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        return _finding(name, ok=False, detail=str(missing).rstrip("."), remedy=remedy, required=False)
    except LabError as error:
        return _finding(name, ok=False, detail=str(error), remedy=remedy, required=False)
    detail = f"{status.state} {status.version} {status.address}".replace("  ", " ").strip()
    return _finding(name, status.state in ("up", "yours"), detail, remedy, required=False)


def _system_calls() -> Finding:
    why = supported()
    remedy = (
        "needed for `labkit effects` and `labkit crashtest --command`; without it the test of a sink kills only "
        "between lines of Python"
    )
    return _finding("system calls", not why, why.rstrip(".") or "can be watched", remedy, required=False)


def _chromium() -> Finding:
    path = find_chromium()
    remedy = "needed only for the browser tests: install the system's chromium package"
    return _finding("Chromium", path is not None, str(path or "not on PATH"), remedy, required=False)
