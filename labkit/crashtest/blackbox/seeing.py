"""How far the test saw what the pipeline does: judged by the reader's rows at each effect of the run without a crash.

Where rows appeared, changed or went between two neighbouring effects, and nothing that was seen there can have done
it, something writes unseen, and nothing may be said of the guarantee. So it is where the kernel itself says that a
file of the pipeline was written in a way that cannot be followed. This module must not judge rows.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.syscalls.calls import CallKind

SHOWING = frozenset(CallKind) - {CallKind.SYNC, CallKind.EXIT}
"""What can change what a reader reads. A file that is made, even an empty one, may be the mark that others are complete."""

ARRIVING = 3
"""What was sent to a server may be seen only behind so many more effects: it answers when it likes."""

REBUILT = ("-shm",)
"""Ends of names of files that whoever opens the store builds anew, so that nothing lasts by them: SQLite's shared memory."""

FEW = 2
"""Places or files that a sentence names."""


class Glance(NamedTuple):
    """What the reader returned while the pipeline waited before one effect."""

    happened: int
    """How many effects had happened."""
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
    """Where the rows were not the same."""
    for earlier, later in pairwise(glances):
        if earlier.rows != later.rows:
            yield Change(earlier, later)


def showing(glances: Sequence[Glance], effects: Sequence[Effect]) -> set[str]:
    """Names of the effects by which rows were seen to change."""
    return {
        effects[change.later.happened - 1].name
        for change in changes(glances)
        if 0 < change.later.happened <= len(effects)
    }


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
    """Why nothing may be said of the guarantee, a sentence each; none if all that the pipeline does was seen.

    `logs`: masked paths of files that nobody reads.
    """
    gaps = [each for each in changes(glances) if not _explained(each, effects, logs)]
    found = []
    if gaps:
        named = "; ".join(_said(each, effects) for each in gaps[:FEW])
        more = f"; and {len(gaps) - FEW} more" if len(gaps) > FEW else ""
        found.append(
            f"something writes unseen: without a crash {named}{more}, and no effect was seen there (--watch DIR names a "
            "folder in which it may write; a process that was started before cannot be seen)"
        )
    if all(each.kind is CallKind.EXIT or each.where in logs for each in effects):
        where = ", ".join(map(str, folders))
        found.append(
            f"no durable effect was seen in {where}, so nothing was cut: --watch DIR names the folder of store and "
            "checkpoint"
        )
    return found + [_blind(name, paths) for name, paths in unseen.items()]


def _blind(name: str, paths: Sequence[str]) -> str:
    files = ", ".join(Path(path).name for path in paths[:FEW])
    more = f" and {len(paths) - FEW} more" if len(paths) > FEW else ""
    which = f" ({files}{more}; --ignore GLOB if nobody depends on it)" if paths else ""
    return f"what this does to the store cannot be followed: {name}{which}"


def blind_spots(
    unseen: Iterable[str],
    paths: Mapping[str, Sequence[str]],
    belongs: "Belongs",
) -> dict[str, list[str]]:
    """What the kernel could not tell, by name, with the files of the pipeline that it concerns.

    What concerns only other files is left out; what names no file may concern any.
    """
    found: dict[str, list[str]] = {}
    for name in unseen:
        named = paths.get(name, ())
        ours = [path for path in named if belongs(path) and not path.endswith(REBUILT)]
        if ours or not named:
            found[name] = ours
    return found


class Belongs:
    """Whether a file is one of the pipeline's, by the folders that are watched and by what is to be ignored."""

    def __init__(self, folders: Sequence[Path], ignored: Sequence[str]) -> None:
        self._folders, self._ignored = folders, ignored

    def __call__(self, path: str) -> bool:
        """Whether this file lies in a watched folder and no pattern leaves it out."""
        for folder in self._folders:
            if Path(path).is_relative_to(folder):
                below = Path(path).relative_to(folder)
                return not any(
                    below.match(pattern) or Path(below.name).match(pattern)
                    for pattern in self._ignored
                )
        return False


def _explained(change: Change, effects: Sequence[Effect], logs: Container[str]) -> bool:
    """Whether an effect between two glances can have changed rows, or a server that was sent something just before.

    A line in a log explains nothing, since the reader does not read it.
    """
    between = effects[change.earlier.happened : change.later.happened]
    if any(each.kind in SHOWING and each.where not in logs for each in between):
        return True
    before = effects[: change.earlier.happened][-ARRIVING:]
    return any(each.kind is CallKind.SEND for each in before)


def _said(change: Change, effects: Sequence[Effect]) -> str:
    counts = ((change.appeared, "appeared"), (change.gone, "went"))
    rows = " and ".join(f"{count} row(s) {word}" for count, word in counts if count)
    earlier, later = (
        _place(each.happened, effects) for each in (change.earlier, change.later)
    )
    return f"{rows} between [{earlier}] and [{later}]"


def _place(happened: int, effects: Sequence[Effect]) -> str:
    if happened < len(effects):
        return f"before {effects[happened].name}"
    return "the end"
