"""Compare the watched folders before and after a run, to find files that changed although no effect names them.

Such a file shows that another process writes it, or that the pipeline changes it in a way that labkit does not know.
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.blackbox.durability import is_rebuilt
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.host.syscalls.calls import CallKind

BYTECODE = "__pycache__"
"""The name of the folder into which Python itself writes when it imports the reader."""


class File(NamedTuple):
    """The attributes by which a file is compared between two moments.

    The status time (ctime) is not among them, because a new hard link changes it.
    """

    changed: int
    """The modification time in nanoseconds."""
    size: int
    mode: int
    inode: int


Files = Mapping[str, File]
"""The regular files in some folders, by path."""


def files_in(folders: Iterable[Path]) -> Files:
    """Return the regular files that are in these folders now."""
    return files_at(f"{place}/{name}" for folder in folders for place, _, names in os.walk(folder) for name in names)


def files_at(paths: Iterable[str]) -> Files:
    """Return those of the `paths` that are regular files now."""
    found: dict[str, File] = {}
    for path in paths:
        with suppress(OSError):
            state = os.lstat(path)
            if stat.S_ISREG(state.st_mode):
                found[path] = File(state.st_mtime_ns, state.st_size, state.st_mode, state.st_ino)
    return found


def changed(before: Files, after: Files, namer: Namer, own: Path) -> list[str]:
    """Return the paths of files that were made, changed or removed between `before` and `after`.

    Python's bytecode, the files that the user ignores, and the files in labkit's folder `own` are left out.
    """
    paths = [Path(path) for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    theirs = [path for path in paths if not path.is_relative_to(own) and path.parent.name != BYTECODE]
    return [str(path) for path in theirs if namer.file(str(path)) is not None]


def unnamed(paths: Iterable[str], effects: Sequence[Effect], before: Files, after: Files) -> list[str]:
    """Return those of the changed `paths` that occur in none of the run's `effects`.

    A path counts as occurring if another hard link to the same file does, or if an effect renames a folder above it.
    The shared-memory file of a database is left out, because a crash cannot harm it.
    """
    calls = [(each.kind, os.path.realpath(path)) for each in effects for path in paths_of(each)]
    named = {path for _, path in calls}
    moved = {path for kind, path in calls if kind is CallKind.RENAME}
    inodes = {files[path].inode for files in (before, after) for path in named if path in files}
    found = []
    for path in paths:
        above = {os.path.realpath(each) for each in Path(path).parents}
        file = after.get(path) or before[path]
        if not (os.path.realpath(path) in named or file.inode in inodes or above & moved or is_rebuilt(path)):
            found.append(path)
    return found


def paths_of(effect: Effect) -> list[str]:
    """Return the paths that an effect names: the old and the new one for a rename or link, otherwise one or none."""
    return [path for path in (effect.call.path, effect.call.target) if path.startswith("/")]
