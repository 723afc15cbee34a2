"""Find log files, which the pipeline only appends to and which neither the pipeline nor its reader ever reads.

No result depends on the length of such a file, so the test does not kill at every write of it. The first write
stays a point, because the file's existence may matter. Every later run checks whether something does read the
file; if so, its points are tried after all.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.file_reads import FileReads
from labkit.host.syscalls.calls import CallKind

APPENDING = frozenset({CallKind.CREATE, CallKind.WRITE, CallKind.SYNC})
"""The kinds of effects that a log may have. A file that is truncated, renamed, linked or removed is no log."""


def logs(effects: Sequence[Effect], reads: FileReads) -> frozenset[str]:
    """Return the masked paths of files that were only appended to and never read."""
    kinds: dict[str, set[CallKind]] = defaultdict(set)
    files: dict[str, set[Path]] = defaultdict(set)
    # An effect is named by its new name, so a file that got another name shows only here.
    renamed = {Path(each.call.path) for each in effects if each.kind in {CallKind.RENAME, CallKind.LINK}}
    for each in effects:
        if each.file:
            kinds[each.where].add(each.kind)
            files[each.where].add(Path(each.call.target or each.call.path))
    return frozenset(
        where
        for where, done in kinds.items()
        if CallKind.WRITE in done
        and done <= APPENDING
        and all(path not in renamed and reads.is_only_written(path) for path in files[where])
    )


def read_after_all(effects: Iterable[Effect], taken: frozenset[str], reads: FileReads) -> frozenset[str]:
    """Return those of the supposed logs that something has read since."""
    return frozenset(
        each.where
        for each in effects
        if each.where in taken and not reads.is_only_written(Path(each.call.target or each.call.path))
    )


def log_notes(taken: Iterable[str], recalled: Iterable[str]) -> list[str]:
    """Return the report's sentences on logs, and on files that only looked like logs."""
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
    """Return the effects before which the test may kill the pipeline.

    For a log, whose path is in `taken`, these are only its creation and its first write.
    """
    written: set[str] = set()
    kept = []
    for each in effects:
        first = each.where not in written
        if each.kind is CallKind.WRITE:
            written.add(each.where)
        if each.where not in taken or (each.kind is not CallKind.SYNC and first):
            kept.append(each)
    return kept
