"""The files of a search on Spark: one per kind, level and part, each complete or absent.

A task that runs twice writes the same file twice, because the name determines the content, and each file is
renamed into place once it is complete.
"""

import os
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.search import rows
from labkit.search.rows import Pairs


class Files(NamedTuple):
    """A folder that all tasks of one search see under the same path."""

    folder: str

    def path(self, kind: str, level: int, part: int = 0) -> Path:
        """Return the path of a part's file of this kind and level."""
        return Path(self.folder) / f"{kind}-{level:05}-{part:05}"

    def dump(self, value: Any, kind: str, level: int, part: int = 0) -> None:
        """Store a value."""
        self._put(self.path(kind, level, part), pickle.dumps(value, -1))

    def undump(self, kind: str, level: int, part: int = 0) -> Any:
        """Load a stored value."""
        path = self.path(kind, level, part)
        return pickle.loads(path.read_bytes())  # noqa: S301  # a task of this search wrote it, into a folder that this search has made

    def save(self, array: NDArray[Any], kind: str, level: int, part: int) -> None:
        """Store an array."""
        path = self.path(kind, level, part)
        with _own(path).open("wb") as file:
            np.save(file, array)
        _own(path).replace(path)

    def load(self, kind: str, level: int, part: int) -> NDArray[Any]:
        """Load a stored array."""
        with self.path(kind, level, part).open("rb") as file:
            array: NDArray[Any] = np.load(file)
        return array

    def send(self, reached: Pairs, kind: str, level: int, part: int, of: int) -> None:
        """Store the reached states sorted by the part that owns them: width and start positions first, then all
        rows.
        """
        ordered, places = rows.by_owner(reached, of)
        head = np.array([ordered["state"].itemsize, *places], np.int64)
        self._put(self.path(kind, level, part), head.tobytes() + ordered.tobytes())

    def received(self, kind: str, level: int, sender: int, part: int, of: int) -> Pairs:
        """Load the rows that one part's task left for another part; the rest of the file is not read."""
        with self.path(kind, level, sender).open("rb") as file:
            width, *places = np.frombuffer(file.read(8 * (of + 2)), np.int64).tolist()
            first, end = places[part : part + 2]
            file.seek(2 * width * first, os.SEEK_CUR)
            written = file.read(2 * width * (end - first))
        return np.frombuffer(written, rows.paired(width))

    def remove(self, kind: str, level: int, part: int) -> None:
        """Delete a file that no task needs any longer."""
        self.path(kind, level, part).unlink()

    @staticmethod
    def _put(path: Path, content: bytes) -> None:
        _own(path).write_bytes(content)
        _own(path).replace(path)


def _own(path: Path) -> Path:
    """Return a name that no other process of this host uses."""
    return path.with_name(f"{path.name}.{os.getpid()}")
