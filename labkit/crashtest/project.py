"""Finds the folder from which the user's file, and what lies beside it, can be imported."""

import functools
import re
from pathlib import Path

_RELATIVE = re.compile(r"^\s*from\s+\.", re.MULTILINE)


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
