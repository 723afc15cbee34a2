"""Logs: files that are only appended to, and that neither the pipeline nor its reader ever reads.

The length of such a file matters to nobody. Its first write stays a point, since the file's existence may matter. Every
later run checks whether somebody reads the file after all; then its points come back.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.file_reads import FileReads
from labkit.host.syscalls.calls import CallKind

APPENDING = frozenset({CallKind.CREATE, CallKind.WRITE, CallKind.SYNC})
"""Kinds of effects on a log. A file that is truncated, renamed, linked or removed is no log."""


def logs(effects: Sequence[Effect], reads: FileReads) -> frozenset[str]:
    """The masked paths of the files that are only appended to, and that nobody has read."""
    kinds: dict[str, set[CallKind]] = defaultdict(set)
    files: dict[str, set[Path]] = defaultdict(set)
    for each in effects:
        if each.file:
            kinds[each.where].add(each.kind)
            files[each.where].add(Path(each.call.target or each.call.path))
    return frozenset(
        where
        for where, done in kinds.items()
        if CallKind.WRITE in done and done <= APPENDING and all(reads.is_only_written(path) for path in files[where])
    )


def read_after_all(effects: Iterable[Effect], taken: frozenset[str], reads: FileReads) -> frozenset[str]:
    """The files, among those taken for logs, that somebody has read by now."""
    return frozenset(
        each.where
        for each in effects
        if each.where in taken and not reads.is_only_written(Path(each.call.target or each.call.path))
    )


def log_notes(taken: Iterable[str], recalled: Iterable[str]) -> list[str]:
    """The report's sentences on logs, and on files that only looked like logs."""
    logs_said = [
        f"{name} was taken for a log: it is only appended to, and neither pipeline nor reader read "
        "it; of its writes only "
        "the first is a point"
        for name in sorted(taken)
    ]
    others = [
        f"{name} looked like a log until a run with a crash read it; then its other points came back"
        for name in sorted(recalled)
    ]
    return logs_said + others


def without(effects: Sequence[Effect], taken: frozenset[str]) -> list[Effect]:
    """The effects that are places: of a log only its creation and its first write."""
    written: set[str] = set()
    kept = []
    for each in effects:
        first = each.where not in written
        if each.kind is CallKind.WRITE:
            written.add(each.where)
        if each.where not in taken or (each.kind is not CallKind.SYNC and first):
            kept.append(each)
    return kept
