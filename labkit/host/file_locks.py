"""Return the locks that processes hold on files, as the kernel lists them in /proc/locks.

The crash test compares such sets of locks. SQLite, for example, locks ranges of bytes of its database file, so an equal
set of locks means that its transaction is in the same state.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_LOCKS = _PROCESSES / "locks"


def write_locks(folders: Iterable[Path]) -> frozenset[str]:
    """Return the exclusive locks that processes hold on files below these folders, one text for each lock.

    A text contains the process, the device, the inode and the locked range. The set is empty if the kernel does not
    list locks. Locks of another user's processes may be missing, because labkit may not see their open files.
    """
    try:
        listed = [line.split() for line in _LOCKS.read_text(encoding="ascii").splitlines()]
    except (OSError, UnicodeDecodeError):
        return frozenset()
    # A line is "1: POSIX  ADVISORY  WRITE 1234 fe:00:4711 0 EOF"; "->" in the second column marks a waiting process.
    held = [words for words in listed if len(words) == 8 and words[3] == "WRITE"]
    below = tuple(f"{folder.resolve()}/" for folder in folders)
    inodes = {inode for process in {words[4] for words in held} for inode in _open_inodes(process, below)}
    return frozenset(" ".join(words[1:]) for words in held if int(words[5].rpartition(":")[2]) in inodes)


def _open_inodes(process: str, below: tuple[str, ...]) -> Iterator[int]:
    """Yield the inodes of a process's open files, but only of files whose path begins with one of the texts `below`.

    `process` is a process id from /proc/locks. If no process has this id, yield the inodes for all processes. The
    process may have ended, or the id may be -1, which the kernel shows for a lock that belongs to an open file
    description instead of a process.
    """
    # Looks at open files, not at all files in the folders: there may be 100,000, and each effect calls this function.
    one = _PROCESSES / process
    for each in [one] if one.exists() else _PROCESSES.glob("[0-9]*"):
        try:
            files = [*os.scandir(each / "fd")]
        except OSError:  # ended, or another user's
            continue
        for file in files:
            with suppress(OSError):  # closed meanwhile
                if os.readlink(file).startswith(below):  # noqa: PTH115  # a `Path` for each of a thousand takes longer
                    yield file.stat().st_ino
