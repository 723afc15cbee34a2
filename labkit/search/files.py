"""The files of a search that Spark runs: of each kind and level one for each part, whole or not there.

A task that runs twice writes the same file twice, since its name says what is in it and it is put in place at the end.
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
    """A folder that all tasks of one search see under this path."""

    folder: str

    def path(self, kind: str, level: int, part: int = 0) -> Path:
        """Where a part's file of this kind and level is."""
        return Path(self.folder) / f"{kind}-{level:05}-{part:05}"

    def dump(self, said: Any, kind: str, level: int, part: int = 0) -> None:
        """Keeps some value."""
        self._put(self.path(kind, level, part), pickle.dumps(said, -1))

    def undump(self, kind: str, level: int, part: int = 0) -> Any:
        """A value that was kept."""
        path = self.path(kind, level, part)
        return pickle.loads(path.read_bytes())  # noqa: S301  # a task of this search wrote it, into a folder that this search has made

    def save(self, array: NDArray[Any], kind: str, level: int, part: int) -> None:
        """Keeps an array."""
        path = self.path(kind, level, part)
        with _own(path).open("wb") as file:
            np.save(file, array)
        _own(path).replace(path)

    def load(self, kind: str, level: int, part: int) -> NDArray[Any]:
        """An array that was kept."""
        with self.path(kind, level, part).open("rb") as file:
            array: NDArray[Any] = np.load(file)
        return array

    def send(self, reached: Pairs, kind: str, level: int, part: int, of: int) -> None:
        """Leaves for each of so many parts the rows that it owns: width and places first, then all rows in
        its order.
        """
        ordered, places = rows.by_owner(reached, of)
        head = np.array([ordered["state"].itemsize, *places], np.int64)
        self._put(self.path(kind, level, part), head.tobytes() + ordered.tobytes())

    def received(self, kind: str, level: int, sender: int, part: int, of: int) -> Pairs:
        """What a part's task has left for another part; nothing else of the file is read."""
        with self.path(kind, level, sender).open("rb") as file:
            width, *places = np.frombuffer(file.read(8 * (of + 2)), np.int64).tolist()
            first, end = places[part : part + 2]
            file.seek(2 * width * first, os.SEEK_CUR)
            written = file.read(2 * width * (end - first))
        return np.frombuffer(written, rows.paired(width))

    def remove(self, kind: str, level: int, part: int) -> None:
        """Drops what no task needs any more."""
        self.path(kind, level, part).unlink()

    @staticmethod
    def _put(path: Path, content: bytes) -> None:
        _own(path).write_bytes(content)
        _own(path).replace(path)


def _own(path: Path) -> Path:
    """A name that no other process of this host uses."""
    return path.with_name(f"{path.name}.{os.getpid()}")
