"""The kinds of options that are paths (`labkit.core.kinds` has all others, and knows no file system)."""

from pathlib import Path
from typing import Any

from labkit.core.kinds import Kind, Plain, Unfit


class AnyPath(Kind[Path]):
    """A path as it was typed. Nothing needs to be there yet."""

    annotation: Any = Path
    accepts = Path | str
    unmatched = "write a path."

    def __init__(self, metavar: str | None = None) -> None:
        self.metavar = metavar

    def read(self, word: object) -> Path:
        """The path."""
        if not isinstance(word, str | Path):
            raise Unfit(self.unmatched)
        return Path(word)

    def plain(self, value: Path) -> Plain:
        """The path as a text."""
        return str(value)


class InputFile(AnyPath):
    """A path that becomes absolute, so that a command can be repeated from anywhere."""

    def read(self, word: object) -> Path:
        """The absolute path."""
        return super().read(word).absolute()


class ExistingFile(InputFile):
    """The path of a file that is there."""

    def read(self, word: object) -> Path:
        """The absolute path. Raises `Unfit` where there is no file."""
        path = super().read(word)
        if not path.is_file():
            raise Unfit("there is no such file.")
        return path


class Folder(InputFile):
    """The path of a folder without symbolic links in it. Where `present`, the folder must be there."""

    annotation = str

    def __init__(self, metavar: str | None = None, *, present: bool = False) -> None:
        super().__init__(metavar)
        self._present = present

    def read(self, word: object) -> Path:
        """The resolved path. Raises `Unfit` for a file, and for a missing folder that must be there."""
        path = super().read(word).resolve()
        if self._present and not path.is_dir():
            raise Unfit("there is no such folder.")
        if path.exists() and not path.is_dir():
            raise Unfit("this is a file; name the folder it is in.")
        return path
