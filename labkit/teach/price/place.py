"""A temporary folder for measurements, in which an error of the disk becomes one sentence instead of a traceback."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labkit.core.errors import JobFailed


@contextmanager
def scratch() -> Iterator[Path]:
    """Provide a temporary folder for a `with` block; errors of the disk or of SQLite in it become `JobFailed`."""
    try:
        with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
            yield Path(folder).resolve()
    except (OSError, sqlite3.Error) as error:
        raise JobFailed(
            f"The measurement could not write into the temporary folder ({error}); free some space, or set TMPDIR to "
            "another folder."
        ) from error
