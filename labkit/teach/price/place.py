"""Where measurements write: a folder that is gone afterwards, and one sentence where a disk does not do its part."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labkit.core.errors import JobFailed


@contextmanager
def scratch() -> Iterator[Path]:
    """A new folder below the system's temporary one, removed at the end.

    Raises `JobFailed` for what the operating system or SQLite refuses meanwhile.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
            yield Path(folder).resolve()
    except (OSError, sqlite3.Error) as error:
        raise JobFailed(
            f"The measurement could not write into the temporary folder ({error}); make room there, or name another "
            "one by TMPDIR."
        ) from error
