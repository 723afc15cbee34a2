"""Find files that look like logs: the pipeline only appends to them, and neither it nor its reader ever reads them.

The test crashes before effects on such files last of all, but does not leave them out, because a program may use the
size of a file as its state, which nobody can observe.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from labkit.crashtest.blackbox.effects import Effect
from labkit.host.file_reads import FileReads
from labkit.host.syscalls.calls import CallKind

_PLACEHOLDER = re.compile(r"<\w+>")

APPENDING = frozenset({CallKind.CREATE, CallKind.WRITE, CallKind.SYNC})
"""The kinds of effects that a log may have. A file that is truncated, renamed, linked or removed is no log."""


def logs(effects: Sequence[Effect], reads: FileReads) -> frozenset[str]:
    """Return the masked paths of the files to which the pipeline only appended, and which nothing read."""
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


def log_notes(effects: Iterable[Effect], taken: Container[str]) -> list[str]:
    """Return a sentence for the report on each file that looks like a log; `taken` are their masked paths."""
    writes = Counter(each.where for each in effects if each.where in taken and each.kind is CallKind.WRITE)
    return [
        f"{name} is only appended to and never read: its {count} write(s) are tried last; "
        f"--ignore {_PLACEHOLDER.sub('*', name)} leaves them out"
        for name, count in sorted(writes.items())
    ]
