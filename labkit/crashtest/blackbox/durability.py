"""Find the sync after which each effect of a run survives a loss of power.

The rules are those of POSIX alone: the contents of a file are durable when the file was synced, its name when its
folder was. Times, modes, owners and extended attributes are durable when the file was synced with fsync, as fdatasync
need not write them. Many file systems guarantee more, but a program that relies on that loses data on others. A SIGKILL
loses none of this.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.syscalls.calls import CallKind

CONTENTS = frozenset({CallKind.WRITE, CallKind.TRUNCATE})
ATTRIBUTES = frozenset({CallKind.ATTRIBUTES})
NAMES = frozenset({CallKind.CREATE, CallKind.RENAME, CallKind.LINK, CallKind.UNLINK, CallKind.MKDIR})


def synced_by(effects: Sequence[Effect]) -> list[Effect | None]:
    """Return, for each system call of a run, the sync after which its effect survives a power cut, or None."""
    syncs: list[Effect | None] = [None] * len(effects)
    waiting: dict[str, list[int]] = {}
    """The effects that no sync has covered yet, by the file or folder that must be synced."""
    for place, effect in enumerate(effects):
        call = effect.call
        if effect.kind is CallKind.SYNC:
            for path in list(waiting) if call.name in ("sync", "syncfs") else [call.path]:
                done = waiting.pop(path, [])
                kept = [each for each in done if call.name == "fdatasync" and effects[each].kind in ATTRIBUTES]
                for each in set(done) - set(kept):
                    syncs[each] = effect
                waiting |= {path: kept} if kept else {}
        elif effect.kind in CONTENTS | ATTRIBUTES:
            if call.synced:
                syncs[place] = effect
            else:
                waiting.setdefault(call.path, []).append(place)
        elif effect.kind in NAMES:
            if effect.kind is CallKind.RENAME:
                _move(waiting, call.path, call.target)
            waiting.setdefault(str(PurePosixPath(call.target or call.path).parent), []).append(place)
    return syncs


def _move(waiting: dict[str, list[int]], old: str, new: str) -> None:
    waiting.pop(new, None)  # the file that had the name is gone
    for path in list(waiting):
        if path == old or path.startswith(f"{old}/"):
            waiting.setdefault(new + path.removeprefix(old), []).extend(waiting.pop(path))


def is_rebuilt(path: str) -> bool:
    """Return whether a path is named like the shared-memory file of a database, which a crash cannot harm.

    The first process that opens the database makes this file anew: SQLite truncates `-shm` (`unixLockSharedMemory` in
    os_unix.c), LMDB initialises `lock.mdb` (`mdb_env_setup_locks` in mdb.c).
    """
    name = PurePosixPath(path).name
    return name.endswith("-shm") or name == "lock.mdb"
