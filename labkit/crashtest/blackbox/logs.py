"""Logs: files that are only appended to, and that neither the pipeline nor its reader ever reads.

Where such a file ends matters to nobody. Its first write stays a point, since its being there may matter. In every
later run it is watched whether somebody reads it after all; then its points come back. This module must not decide what
is run.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.file_reads import FileReads
from labkit.host.syscalls.calls import CallKind

APPENDING = frozenset({CallKind.CREATE, CallKind.WRITE, CallKind.SYNC})
"""What is done to a log. A file that is cut, renamed, linked or removed is none."""


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
        if CallKind.WRITE in done
        and done <= APPENDING
        and all(reads.is_only_written(path) for path in files[where])
    )


def read_after_all(
    effects: Iterable[Effect], taken: frozenset[str], reads: FileReads
) -> frozenset[str]:
    """Those of the files taken for logs that somebody has read now."""
    return frozenset(
        each.where
        for each in effects
        if each.where in taken
        and not reads.is_only_written(Path(each.call.target or each.call.path))
    )


def log_notes(taken: Iterable[str], recalled: Iterable[str]) -> list[str]:
    """What a report says of logs, and of what only looked like one."""
    logs_said = [
        f"{name} was taken for a log: it is only appended to, and neither pipeline nor reader read it; of its writes only "
        "the first is a point"
        for name in sorted(taken)
    ]
    others = [
        f"{name} looked like a log until a run with a crash read it; then its other points came back"
        for name in sorted(recalled)
    ]
    return logs_said + others


def without(effects: Sequence[Effect], taken: frozenset[str]) -> list[Effect]:
    """The effects that are places: of each log what makes it, and its first write."""
    written: set[str] = set()
    kept = []
    for each in effects:
        first = each.where not in written
        if each.kind is CallKind.WRITE:
            written.add(each.where)
        if each.where not in taken or (each.kind is not CallKind.SYNC and first):
            kept.append(each)
    return kept
