"""Return the locks that processes hold on files, as the kernel lists them in /proc/locks.

SQLite, for example, locks ranges of bytes of its database file, so an equal set of locks means that the database is in
the same state of its transaction.
"""

import os
from collections.abc import Iterable
from pathlib import Path

_LOCKS = Path("/proc/locks")


def write_locks(folders: Iterable[Path]) -> frozenset[str]:
    """Return the exclusive locks that processes hold on files below these folders, as texts.

    Each text has the process, the device, the inode and the locked range. The set is empty if the kernel does not list
    locks.
    """
    try:
        listed = [line.split() for line in _LOCKS.read_text(encoding="ascii").splitlines()]
    except (OSError, UnicodeDecodeError):
        return frozenset()
    # A line is "1: POSIX  ADVISORY  WRITE 1234 fe:00:4711 0 EOF"; "->" in the second column marks a waiting process.
    held = [words for words in listed if len(words) == 8 and words[3] == "WRITE"]
    inodes = _inodes(folders) if held else set()
    return frozenset(" ".join(words[1:]) for words in held if words[5] in inodes)


def _inodes(folders: Iterable[Path]) -> set[str]:
    # Each file in the form DEVICE:INODE of /proc/locks.
    found = set()
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                try:
                    status = os.lstat(f"{place}/{name}")
                except OSError:
                    continue
                device = status.st_dev
                found.add(f"{os.major(device):02x}:{os.minor(device):02x}:{status.st_ino}")
    return found
