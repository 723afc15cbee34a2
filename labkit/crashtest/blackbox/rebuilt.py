"""Recognises files in which a database keeps memory that its processes share: nothing in them lasts.

The first process that opens the store makes them anew, so neither a SIGKILL nor a loss of power matters to them: SQLite
truncates `-shm` (`unixLockSharedMemory` in os_unix.c), LMDB initialises `lock.mdb` (`mdb_env_setup_locks` in mdb.c).
"""

from pathlib import PurePosixPath


def is_rebuilt(path: str) -> bool:
    """Return whether the file at a path is shared memory of SQLite (`-shm`) or LMDB (`lock.mdb`), by its name."""
    name = PurePosixPath(path).name
    return name.endswith("-shm") or name == "lock.mdb"
