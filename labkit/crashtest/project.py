"""The user's project: which code counts as the sink's, and which is the interpreter's, a package's or the lab's.

An effect is the sink's if a frame of the project is on the stack. What a logger writes is no part of the sink, and
neither is what the user has named with `--ignore`.
"""

import fnmatch
import functools
import json
import logging
import os
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders below which no file is the user's own, unless `--code` names it."""

_RELATIVE = re.compile(r"^\s*from\s+\.", re.MULTILINE)

_LAB = str(Path(__file__).parents[1])
_LIBRARIES = tuple(os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
_LOGGING = str(Path(logging.__file__).parent)


class Project(NamedTuple):
    """The user's code, as every process of a test must know it."""

    file: str
    """The sink's own file."""
    folders: tuple[str, ...] = ()
    """The file's folder, the root of its package, and the folder in which the test was started."""
    more: tuple[str, ...] = ()
    """Folders that `--code` names; there installed packages count, too."""
    ignored: tuple[str, ...] = ()
    """Patterns of files, or of `host:port`, whose effects are none of the sink's."""

    @classmethod
    def of(cls, file: str, more: Sequence[str] = (), ignored: Sequence[str] = ()) -> "Project":
        """The project of a file, as it is seen from the current working folder."""
        folders = (str(Path(file).parent), str(package_root(file)), str(Path.cwd()))
        real = dict.fromkeys(os.path.realpath(folder) for folder in folders)
        added = tuple(os.path.realpath(folder) for folder in more)
        return cls(file, tuple(real), added, tuple(ignored))

    @classmethod
    def from_text(cls, text: str) -> "Project":
        """The project that `text` gave."""
        file, *lists = json.loads(text)
        return cls(file, *(tuple(each) for each in lists))

    def text(self) -> str:
        """The project as text, for the environment of another process."""
        return json.dumps(self)

    def ignores(self, target: str) -> bool:
        """Whether the user said that this file or peer is no part of the sink."""
        name = target.rpartition("/")[2]
        return any(fnmatch.fnmatch(target, pattern) or fnmatch.fnmatch(name, pattern) for pattern in self.ignored)

    def line(self, frame: FrameType | None) -> tuple[str, int]:
        """The file and the line of the project that is being executed, the innermost one; ("", 0) if there is none.

        The file is empty if it is the sink's own. What a logger does for the project is none of the project's lines.
        """
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self.file:
                return "", frame.f_lineno
            if counts(name, self.folders, self.more):
                return short(name, self.folders), frame.f_lineno
            if name.startswith(_LOGGING):
                break
            frame = frame.f_back
        return "", 0


@functools.cache
def counts(file: str, folders: tuple[str, ...], more: tuple[str, ...]) -> bool:
    """Whether a file of code belongs to a project."""
    # Code that comes from no file: `<string>`, `<frozen importlib>`.
    if file.startswith("<"):
        return False
    path = os.path.realpath(file)
    if _below(path, more):
        return True
    foreign = _below(path, (_LAB, *_LIBRARIES)) or INSTALLED & set(path.split("/"))
    return not foreign and _below(path, folders)


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


@functools.cache
def short(file: str, folders: tuple[str, ...]) -> str:
    """A file's name for a person: its path within the nearest folder of the project."""
    path = os.path.realpath(file)
    above = [folder for folder in folders if _below(path, (folder,))]
    return os.path.relpath(path, max(above, key=len)) if above else path


def package_root(file: str | Path) -> Path:
    """The folder from which a file's package can be imported; the file's own folder if it is in no package."""
    folder = Path(file).parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    if folder == Path(file).parent:
        return _namespace_root(Path(file)) or folder
    return folder


@functools.cache
def _namespace_root(file: Path) -> Path | None:
    """The folder from which a file with relative imports is imported, if no folder has an `__init__`."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if not _RELATIVE.search(text):
        return None
    for base in (Path.cwd() / "src", Path.cwd()):
        inner = file.parent.relative_to(base) if file.is_relative_to(base) else None
        if inner is not None and inner.parts and all(map(str.isidentifier, inner.parts)):
            return base
    return None
