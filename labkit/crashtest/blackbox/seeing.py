"""Checks whether the test saw all that changes rows, by the reader's rows at each effect of the run without a crash.

Where rows appeared, changed or went between two neighbouring effects, and no effect that was seen there can have done
it, something writes unseen, and the guarantee is unknown. The same holds where the kernel itself says that a file of
the pipeline was written in a way that cannot be followed.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.points import EXIT
from labkit.host.syscalls.calls import CallKind

SHOWING = frozenset(CallKind) - {CallKind.SYNC, CallKind.EXIT}
"""Kinds of effects that can change a reader's rows. A new file, even an empty one, may mark others as complete."""

ARRIVING = 3
"""Bytes sent to a server may show only so many effects later, since the server answers when it likes; and what another
thread or process was let do, since it may be doing it still."""

TOLD_BY_SYNC = ("-wal",)
"""Endings of files whose sync comes just before readers learn of what was written there: SQLite's log, by its shared
memory."""

REBUILT = ("-shm",)
"""Endings of files that are built anew when a store is opened, so that nothing lasts by them: SQLite's shared memory.
"""

FEW = 2
"""How many places or files a sentence names."""


class Glance(NamedTuple):
    """The reader's rows while the pipeline waited before one effect."""

    happened: int
    """How many effects had happened before."""
    rows: Mapping[str, int]
    """Each row as text, and how often it was there."""


class Change(NamedTuple):
    """Rows that appeared or went between two glances."""

    earlier: Glance
    later: Glance

    @property
    def appeared(self) -> int:
        """How many rows came."""
        return (Counter(self.later.rows) - Counter(self.earlier.rows)).total()

    @property
    def gone(self) -> int:
        """How many rows went."""
        return (Counter(self.earlier.rows) - Counter(self.later.rows)).total()


def changes(glances: Sequence[Glance]) -> Iterator[Change]:
    """Neighbouring glances whose rows differ."""
    for earlier, later in pairwise(glances):
        if earlier.rows != later.rows:
            yield Change(earlier, later)


def showing(glances: Sequence[Glance], effects: Sequence[Effect]) -> set[str]:
    """Names of the effects by which rows were seen to change; none if nobody looked between the first and the last."""
    if len(glances) <= 2:
        return set()
    return {
        effects[change.later.happened - 1].name
        for change in changes(glances)
        if 0 < change.later.happened <= len(effects)
    } - {EXIT}


def replaces(glances: Sequence[Glance]) -> bool:
    """Whether rows went away without a crash: then the pipeline replaces what it wrote, by design."""
    return any(change.gone for change in changes(glances))


def doubts(
    glances: Sequence[Glance],
    effects: Sequence[Effect],
    unseen: Mapping[str, Sequence[str]],
    folders: Sequence[Path],
    logs: Container[str] = (),
) -> list[str]:
    """Why nothing may be said of the guarantee, a sentence each; none if all that changes rows was seen.

    `logs`: masked paths of files that nobody reads.
    """
    gaps = [each for each in changes(glances) if not _explained(each, effects, logs)]
    reasons = []
    if gaps:
        named = "; ".join(_said(each, effects) for each in gaps[:FEW])
        more = f"; and {len(gaps) - FEW} more" if len(gaps) > FEW else ""
        reasons.append(
            f"something writes unseen: without a crash {named}{more}, and no effect was seen there "
            "(--watch DIR names a "
            "folder in which it may write; a process that was started before cannot be seen)"
        )
    if all(each.kind is CallKind.EXIT or each.where in logs for each in effects):
        where = ", ".join(map(str, folders))
        reasons.append(
            f"no durable effect was seen in {where}, so nothing was cut: --watch DIR names the folder of store and "
            "checkpoint"
        )
    return reasons + [_blind(name, paths) for name, paths in unseen.items()]


def _blind(name: str, paths: Sequence[str]) -> str:
    files = ", ".join(Path(path).name for path in paths[:FEW])
    more = f" and {len(paths) - FEW} more" if len(paths) > FEW else ""
    which = f" ({files}{more}; --ignore GLOB if nobody depends on it)" if paths else ""
    return f"what this does to the store cannot be followed: {name}{which}"


def blind_spots(unseen: Iterable[str], paths: Mapping[str, Sequence[str]], belongs: "Belongs") -> dict[str, list[str]]:
    """Calls that could not be followed, by name, with the pipeline's files that they concern.

    A call that concerns only other files is left out; a call that names no file may concern any.
    """
    concerned: dict[str, list[str]] = {}
    for name in unseen:
        named = paths.get(name, ())
        ours = [path for path in named if belongs(path) and not path.endswith(REBUILT)]
        if ours or not named:
            concerned[name] = ours
    return concerned


class Belongs:
    """Tells whether a file is the pipeline's, by the watched folders and the ignored patterns."""

    def __init__(self, folders: Sequence[Path], ignored: Sequence[str]) -> None:
        self._folders, self._ignored = folders, ignored

    def __call__(self, path: str) -> bool:
        """Whether this file lies in a watched folder and no pattern leaves it out."""
        for folder in self._folders:
            if Path(path).is_relative_to(folder):
                below = Path(path).relative_to(folder)
                return not any(below.match(pattern) or Path(below.name).match(pattern) for pattern in self._ignored)
        return False


def _explained(change: Change, effects: Sequence[Effect], logs: Container[str]) -> bool:
    """Whether an effect between two glances, or one just before that may go on, can have changed rows.

    A line in a log explains nothing, since the reader does not read it.
    """
    happened = change.earlier.happened
    between = effects[happened : change.later.happened]
    if any(_shows(each) and each.where not in logs for each in between):
        return True
    for number in range(max(0, happened - ARRIVING), happened):
        each = effects[number]
        later = {one.call.pid for one in effects[number + 1 : happened + 1]}
        under_way = _shows(each) and each.call.pid not in later
        if each.kind is CallKind.SEND or (under_way and each.where not in logs):
            return True
    return False


def _shows(effect: Effect) -> bool:
    """Whether rows may change by this effect."""
    told = effect.kind is CallKind.SYNC and effect.where.endswith(TOLD_BY_SYNC)
    return effect.kind in SHOWING or told


def _said(change: Change, effects: Sequence[Effect]) -> str:
    counts = ((change.appeared, "appeared"), (change.gone, "went"))
    rows = " and ".join(f"{count} row(s) {word}" for count, word in counts if count)
    later = _place(change.later.happened, effects)
    if change.earlier.happened == change.later.happened:
        return f"{rows} between the start and [{later}]"
    return f"{rows} between [{_place(change.earlier.happened, effects)}] and [{later}]"


def _place(happened: int, effects: Sequence[Effect]) -> str:
    if happened < len(effects):
        return f"before {effects[happened].name}"
    return "the end"
