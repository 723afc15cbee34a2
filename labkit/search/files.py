"""The files of a search on Spark: one per kind, level and partition. Each is complete or absent.

The name of a file determines its content, so a task that runs twice writes the same file twice. Each file is renamed
into place once it is complete.
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
    """The files of one search, in a directory that all its Spark tasks see under the same path.

    A file is identified by the kind of its content, the level (the number of steps from the start), and the number of
    the partition (`part`) of the states.
    """

    folder: str

    def path(self, kind: str, level: int, part: int = 0) -> Path:
        """Return the path of the file with this `kind` of content, such as "sent"."""
        return Path(self.folder) / f"{kind}-{level:05}-{part:05}"

    def dump(self, value: Any, kind: str, level: int, part: int = 0) -> None:
        """Pickle a value into a file of the search; if the process dies meanwhile, the file is complete or missing."""
        self._put(self.path(kind, level, part), pickle.dumps(value, -1))

    def undump(self, kind: str, level: int, part: int = 0) -> Any:
        """Return the value that `dump` pickled into the file for this kind of content, level and partition."""
        path = self.path(kind, level, part)
        return pickle.loads(path.read_bytes())  # noqa: S301  # a task of this search wrote it, into a folder that this search has made

    def save(self, array: NDArray[Any], kind: str, level: int, part: int) -> None:
        """Write an array into a file of the search; if the process dies meanwhile, the file is complete or missing."""
        path = self.path(kind, level, part)
        with _own(path).open("wb") as file:
            np.save(file, array)
        _own(path).replace(path)

    def load(self, kind: str, level: int, part: int) -> NDArray[Any]:
        """Return the array that `save` wrote into the file for this kind of content, level and partition."""
        with self.path(kind, level, part).open("rb") as file:
            array: NDArray[Any] = np.load(file)
        return array

    def send(self, reached: Pairs, kind: str, level: int, part: int, of: int) -> None:
        """Write the states that a task has reached into one file, grouped by the partition that each state belongs to.

        `of` is the number of partitions. The file begins with the width of a row in bytes and the start of each group,
        so that a reader can load a single group.
        """
        ordered, places = rows.by_owner(reached, of)
        head = np.array([ordered["state"].itemsize, *places], np.int64)
        self._put(self.path(kind, level, part), head.tobytes() + ordered.tobytes())

    def received(self, kind: str, level: int, sender: int, part: int, of: int) -> Pairs:
        """Return the states, each with its parent, that the task for partition `sender` sent to partition `part`.

        `kind` and `level` identify the file that `send` has written, and `of` is the number of partitions.
        """
        with self.path(kind, level, sender).open("rb") as file:
            width, *places = np.frombuffer(file.read(8 * (of + 2)), np.int64).tolist()
            first, end = places[part : part + 2]
            file.seek(2 * width * first, os.SEEK_CUR)
            written = file.read(2 * width * (end - first))
        return np.frombuffer(written, rows.paired(width))

    def remove(self, kind: str, level: int, part: int) -> None:
        """Delete one file of the search. Raises `FileNotFoundError` if it does not exist."""
        self.path(kind, level, part).unlink()

    @staticmethod
    def _put(path: Path, content: bytes) -> None:
        _own(path).write_bytes(content)
        _own(path).replace(path)


def _own(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}")
