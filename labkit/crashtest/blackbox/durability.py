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
    """Return for each durable system call the sync that makes it survive a power cut; None if nothing does."""
    return Syncs(effects).syncs


class Syncs:
    """Finds the sync that makes each durable system call of a run survive a power cut, in one pass."""

    def __init__(self, effects: Sequence[Effect]) -> None:
        self.syncs: list[Effect | None] = [None] * len(effects)
        self._waiting: dict[str, list[int]] = {}
        self._effects = effects
        for place, effect in enumerate(effects):
            if effect.kind is CallKind.SYNC:
                self._sync(effect)
            elif effect.kind in CONTENTS | ATTRIBUTES:
                self._write(place, effect)
            elif effect.kind in NAMES:
                self._name(place, effect)

    def _sync(self, effect: Effect) -> None:
        everything = effect.call.name in ("sync", "syncfs")
        paths = list(self._waiting) if everything else [effect.call.path]
        for path in paths:
            waiting = self._waiting.pop(path, [])
            is_data_only = effect.call.name == "fdatasync"
            kept = [place for place in waiting if is_data_only and self._effects[place].kind in ATTRIBUTES]
            for place in waiting:
                if place not in kept:
                    self.syncs[place] = effect
            if kept:
                self._waiting[path] = kept

    def _write(self, place: int, effect: Effect) -> None:
        if effect.call.synced:
            self.syncs[place] = effect
        else:
            self._waiting.setdefault(effect.call.path, []).append(place)

    def _name(self, place: int, effect: Effect) -> None:
        call = effect.call
        if effect.kind is CallKind.RENAME:
            self._move(call.path, call.target)
        named = call.target or call.path
        self._waiting.setdefault(str(PurePosixPath(named).parent), []).append(place)

    def _move(self, old: str, new: str) -> None:
        self._waiting.pop(new, None)  # the file that had the name is gone
        for path in list(self._waiting):
            if path == old or path.startswith(f"{old}/"):
                moved = new + path.removeprefix(old)
                self._waiting.setdefault(moved, []).extend(self._waiting.pop(path))


def is_rebuilt(path: str) -> bool:
    """Return whether a path is, by its name, shared memory of a database; a crash cannot harm it.

    The first process that opens the store makes the file anew: SQLite truncates `-shm` (`unixLockSharedMemory` in
    os_unix.c), LMDB initialises `lock.mdb` (`mdb_env_setup_locks` in mdb.c).
    """
    name = PurePosixPath(path).name
    return name.endswith("-shm") or name == "lock.mdb"
