"""Distinguishes the user's project from other code: files next to the sink count; Python, packages and labkit do not.

An effect belongs to the sink if code of the project is on the call stack. Effects of a logger, and of files that the
user excludes with `--ignore`, do not belong to it.
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
"""Names of folders whose files are not the user's own, unless `--code` names them."""

_RELATIVE = re.compile(r"^\s*from\s+\.", re.MULTILINE)

_LAB = str(Path(__file__).parents[1])
_LIBRARIES = tuple(os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
_LOGGING = str(Path(logging.__file__).parent)


class Project(NamedTuple):
    """The location of the user's code, which every process of a test must know."""

    file: str
    """The file that defines the sink."""
    folders: tuple[str, ...] = ()
    """The file's folder, the root of its package, and the folder in which the test was started."""
    more: tuple[str, ...] = ()
    """Folders that `--code` names; installed packages below them count as well."""
    ignored: tuple[str, ...] = ()
    """Patterns of files, or of `host:port`, whose effects do not belong to the sink."""

    @classmethod
    def of(cls, file: str, more: Sequence[str] = (), ignored: Sequence[str] = ()) -> "Project":
        """Return the project of the sink's file; the current working folder belongs to it."""
        folders = (str(Path(file).parent), str(package_root(file)), str(Path.cwd()))
        real = dict.fromkeys(os.path.realpath(folder) for folder in folders)
        added = tuple(os.path.realpath(folder) for folder in more)
        return cls(file, tuple(real), added, tuple(ignored))

    @classmethod
    def from_text(cls, text: str) -> "Project":
        """Return the project from the text that the method `text` returned."""
        file, *lists = json.loads(text)
        return cls(file, *(tuple(each) for each in lists))

    def text(self) -> str:
        """Return the project as text, for the environment of another process."""
        return json.dumps(self)

    def ignores(self, target: str) -> bool:
        """Return whether the user excludes this file or server with `--ignore`."""
        name = target.rpartition("/")[2]
        return any(fnmatch.fnmatch(target, pattern) or fnmatch.fnmatch(name, pattern) for pattern in self.ignored)

    def line(self, frame: FrameType | None) -> tuple[str, int]:
        """Return the file and number of the innermost source line of the project on the call stack.

        The result is ("", 0) if there is none. The file is empty if it is the file that defines the sink. A logger's
        frames end the search, so logging counts for no line.
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
    """Return whether a source file belongs to the project with these folders; `more` are those that `--code` names."""
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
    """Return a file's name for messages: its path relative to the nearest folder of the project."""
    path = os.path.realpath(file)
    above = [folder for folder in folders if _below(path, (folder,))]
    return os.path.relpath(path, max(above, key=len)) if above else path


def package_root(file: str | Path) -> Path:
    """Return the folder from which a file's package can be imported; the file's own folder if it is in no package."""
    folder = Path(file).parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    if folder == Path(file).parent:
        return _namespace_root(Path(file)) or folder
    return folder


@functools.cache
def _namespace_root(file: Path) -> Path | None:
    """Return the folder from which a file with relative imports can be imported although no folder has an
    `__init__.py`.

    Return None if the file has no relative imports.
    """
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
