"""Distinguishes the user's project from other code, and finds the folder from which its files can be imported."""

import functools
import os
import re
import sysconfig
from pathlib import Path

INSTALLED = frozenset({"site-packages", "dist-packages"})

_FOREIGN = (Path(__file__).parents[1], *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")))
_RELATIVE = re.compile(r"^\s*from\s+\.", re.MULTILINE)


@functools.cache
def belongs(file: str, folders: tuple[Path, ...]) -> bool:
    """Return whether a file is in one of these folders, and not a part of Python, labkit or an installed package."""
    if file.startswith("<"):  # code that comes from no file: `<string>`, `<frozen importlib>`
        return False
    path = Path(os.path.realpath(file))
    foreign = INSTALLED & set(path.parts) or any(path.is_relative_to(folder.resolve()) for folder in _FOREIGN)
    return not foreign and any(path.is_relative_to(folder.resolve()) for folder in folders)


def package_root(file: str | Path) -> Path:
    """Return the folder that `sys.path` needs for a file: the parent of its outermost package, or its own folder."""
    folder = Path(file).parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    if folder == Path(file).parent:
        return _namespace_root(Path(file)) or folder
    return folder


@functools.cache
def _namespace_root(file: Path) -> Path | None:
    """Return the folder that `sys.path` needs for a file in a package without `__init__.py`; None for any other file.

    A file counts as part of such a package if it has relative imports and lies in a folder below the working folder or
    its folder `src`.
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
