"""Defines the kinds of command-line options whose value is a path.

All other kinds are in `labkit.core.kinds`, which may not use the file system.
"""

from pathlib import Path
from typing import Any

from labkit.core.kinds import Kind, Plain, Unfit


class AnyPath(Kind[Path]):
    """The type of a command-line option whose value is a path, as the user typed it; the file need not exist."""

    annotation: Any = Path
    accepts = Path | str
    unmatched = "write a path, or leave the option out."

    def __init__(self, metavar: str | None = None) -> None:
        self.metavar = metavar

    def read(self, word: object) -> Path:
        """Return the path that the user typed. Raises `Unfit` for empty text, which would mean the working folder."""
        if not isinstance(word, str | Path) or word == "":
            raise Unfit(self.unmatched)
        return Path(word)

    def plain(self, value: Path) -> Plain:
        return str(value)


class InputFile(AnyPath):
    """The type of an option that names a file. The path becomes absolute, independent of the working folder."""

    def read(self, word: object) -> Path:
        return super().read(word).absolute()


class ExistingFile(InputFile):
    """The type of a command-line option whose value is the path of an existing file."""

    def read(self, word: object) -> Path:
        """Return the absolute form of the path that the user typed. Raises `Unfit` if there is no such file."""
        path = super().read(word)
        if not path.is_file():
            raise Unfit("there is no such file.")
        return path


class Folder(InputFile):
    """The type of an option that names a folder. Symbolic links are resolved. If `present`, the folder must exist."""

    annotation = str

    def __init__(self, metavar: str | None = None, *, present: bool = False) -> None:
        super().__init__(metavar)
        self._present = present

    def read(self, word: object) -> Path:
        """Return the absolute path of the folder, with all symbolic links resolved.

        Raises `Unfit` if the path is a file, or if the folder must be present but is missing.
        """
        path = super().read(word).resolve()
        if self._present and not path.is_dir():
            raise Unfit("there is no such folder.")
        if path.exists() and not path.is_dir():
            raise Unfit("this is a file; name a folder, such as the one that contains it.")
        return path
