"""Check whether the test observed every write that changes rows, by the reader's rows at each effect of a healthy run.

If rows appeared, changed or disappeared between two readings, and no effect between them can be the cause, something
writes unobserved, so the guarantee is unknown. The same holds if the kernel reports that a file of the pipeline was
written in a way that the test cannot follow.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.blackbox.durability import is_rebuilt
from labkit.crashtest.blackbox.effects import RETURN, Effect, Namer
from labkit.crashtest.blackbox.points import EXIT
from labkit.host.file_reads import FileReads
from labkit.host.syscalls.calls import CallKind

SHOWING = frozenset(CallKind) - {CallKind.SYNC, CallKind.EXIT}
"""The kinds of effects that can change a reader's rows. Even a new, empty file may mark other files as complete."""

ARRIVING = 3
"""Bytes sent to a server may change rows during this many later effects, as its answer may take a while."""

TOLD_BY_SYNC = ("-wal",)
"""The endings of files whose sync can change rows: after it, SQLite publishes its log through shared memory."""

NOT_CALLS = "--watch DIR names a folder in which it may write; a process started before the test cannot be seen"
NOT_LINES = "only your Python in the driver is seen, and neither Spark's workers nor the JVM"
"""What each way of watching (system calls, or lines of Python) cannot see, for messages about unseen writes."""

WIDEST = 20
"""If more effects than this lie between two readings, only the last one counts as one that changed the rows."""

_DATABASE_LOGS = ("-journal", "-wal", "-shm", ".wal")
"""The endings of the files in which a database keeps an open transaction."""

FEW = 2
"""The number of gaps or files that a message describes."""


class Glance(NamedTuple):
    """The rows that the reader returned while the pipeline was stopped before a system call with a durable effect."""

    happened: int
    """The number of effects that had happened before this reading."""
    rows: Mapping[str, int]
    """How often each row occurred, with the row as JSON text."""


class Change(NamedTuple):
    """Two consecutive readings of the store that returned different rows."""

    earlier: Glance
    later: Glance

    @property
    def appeared(self) -> int:
        return (Counter(self.later.rows) - Counter(self.earlier.rows)).total()

    @property
    def gone(self) -> int:
        return (Counter(self.earlier.rows) - Counter(self.later.rows)).total()


def changes(glances: Sequence[Glance]) -> Iterator[Change]:
    """Yield each pair of consecutive readings of the store that returned different rows."""
    for earlier, later in pairwise(glances):
        if earlier.rows != later.rows:
            yield Change(earlier, later)


def showing(glances: Sequence[Glance], effects: Sequence[Effect], minor: Container[str] = ()) -> set[str]:
    """Return the names of the system calls that changed the reader's rows, or may have.

    `glances` are the readings during a run, and `effects` the calls of the run. If the rows changed between two
    readings, the last call between them counts. Usually it is the only one, but a lock may have kept the reader out for
    several calls. If at most `WIDEST` calls lie between the readings, all of them count, because any of them may have
    changed the rows while the user's own code held the lock. Two kinds of earlier calls never count: calls inside a
    database's transaction, because they show no rows, and calls on the files `minor` (masked paths of the engine's own
    files), because they hardly ever show rows.

    The result is empty if the reader was called only at the beginning and at the end of the run.
    """
    if len(glances) <= 2:
        return set()
    names = set()
    for change in changes(glances):
        begin, end = change.earlier.happened, change.later.happened
        between = effects[begin:end] if end - begin <= WIDEST else []
        names |= {each.name for each in _outside_databases(between) if _shows(each) and each.where not in minor}
        names |= {each.name for each in effects[max(end - 1, 0) : end]}
    return names - {EXIT}


def _outside_databases(effects: Sequence[Effect]) -> list[Effect]:
    files = {each.where for each in effects}
    open_ = {file.removesuffix(end) for file in files for end in _DATABASE_LOGS if file.endswith(end)}
    return [each for each in effects if each.where not in open_ and not each.where.endswith(_DATABASE_LOGS)]


def replaces(glances: Sequence[Glance]) -> bool:
    """Return whether rows disappeared although nothing crashed; then the pipeline replaces its output by design."""
    return any(change.gone for change in changes(glances))


def doubts(
    glances: Sequence[Glance],
    effects: Sequence[Effect],
    unseen: Mapping[str, Sequence[str]],
    folders: Sequence[Path],
    logs: Container[str] = (),
    *,
    by_lines: bool = False,
) -> list[str]:
    """Return the reasons, as sentences, why the test may have missed a write; [] if it observed every write.

    `unseen` maps the name of each call that the test could not follow to the list of its files. `logs` are the paths
    (with placeholders for numbers and ids) of files that neither the pipeline nor the reader reads. With `by_lines`,
    the test watched lines of Python instead of system calls.
    """
    gaps = [each for each in changes(glances) if not _explained(each, effects, logs)]
    # Calls that the test cannot follow come first, because they may be the cause of the other reasons.
    reasons = [_blind(name, paths) for name, paths in unseen.items()]
    if gaps:
        named = "; ".join(_gap_text(each, effects) for each in gaps[:FEW])
        more = f"; and {len(gaps) - FEW} more" if len(gaps) > FEW else ""
        reasons.append(
            f"something writes unseen: without a crash {named}{more}, and no effect was seen there "
            f"({NOT_LINES if by_lines else NOT_CALLS})"
        )
    if all(each.kind is CallKind.EXIT or each.where in logs for each in effects):
        where = ", ".join(map(str, folders))
        what, remedy = f"durable effect was seen in {where}", "--watch DIR names the folder of store and checkpoint"
        if by_lines:
            what, remedy = "line of the sink was seen", NOT_LINES
        reasons.append(f"no {what}, so the test killed at none: {remedy}")
    return reasons


def unseen_files(paths: Sequence[str]) -> list[str]:
    """Return a reason for doubt, in a list, if the files at `paths` changed and no effect names them; otherwise []."""
    if not paths:
        return []
    remedy = "a process started before the test cannot be seen; --ignore GLOB if nobody depends on the file"
    return [f"something writes unseen: {_names(paths)} changed without a crash, and no effect names it ({remedy})"]


def _names(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - FEW} more" if len(paths) > FEW else ""
    return ", ".join(Path(path).name for path in paths[:FEW]) + more


def _blind(name: str, paths: Sequence[str]) -> str:
    which = f" ({_names(paths)}; --ignore GLOB if nobody depends on it)" if paths else ""
    return f"a call whose effect on the store cannot be followed: {name}{which}"


def blind_spots(unseen: Iterable[str], paths: Mapping[str, Sequence[str]], namer: Namer) -> dict[str, list[str]]:
    """Return the system calls that the test could not follow: a dict from each call's name to its files.

    `unseen` are the names of all such calls, and `paths` maps them to all of their files. The result has only the files
    of the pipeline. A call that concerns only other programs' files is left out, and a call whose files are unknown
    gets an empty list.
    """
    concerned: dict[str, list[str]] = {}
    for name in unseen:
        named = paths.get(name, ())
        ours = [path for path in named if namer.file(path) is not None and not is_rebuilt(path)]
        if ours or not named:
            concerned[name] = ours
    return concerned


def _explained(change: Change, effects: Sequence[Effect], logs: Container[str]) -> bool:
    """Return whether a system call that the test observed can be the reason why two readings differ.

    The call may lie between the two readings, or before them, if it was perhaps still under way. A write to a log is no
    reason, because the reader does not read logs.
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
    """Return whether this system call, or line of Python, can change the rows that a reader gets.

    A return from a function writes nothing: if rows appear after it, another thread or process, or the JVM, wrote them.
    """
    is_shown_by_sync = effect.kind is CallKind.SYNC and effect.where.endswith(TOLD_BY_SYNC)
    returns = effect.kind is CallKind.LINE and effect.call.name == RETURN
    return (effect.kind in SHOWING and not returns) or is_shown_by_sync


def _gap_text(change: Change, effects: Sequence[Effect]) -> str:
    counts = ((change.appeared, "appeared"), (change.gone, "disappeared"))
    rows = " and ".join(f"{count} row(s) {word}" for count, word in counts if count)
    later = _place(change.later.happened, effects)
    if change.earlier.happened == change.later.happened:
        return f"{rows} between the start and [{later}]"
    return f"{rows} between [{_place(change.earlier.happened, effects)}] and [{later}]"


def _place(happened: int, effects: Sequence[Effect]) -> str:
    if happened < len(effects):
        return f"before {effects[happened].name}"
    return "the end"


# Files that look like logs: the pipeline only appends to them, and neither it nor its reader ever reads them. The test
# crashes before effects on them last of all, but does not leave them out, because a program may use the size of a file
# as its state, which nobody can observe.

_PLACEHOLDER = re.compile(r"<\w+>")

APPENDING = frozenset({CallKind.CREATE, CallKind.WRITE, CallKind.SYNC})
"""The kinds of effects that a log may have. A file that is truncated, renamed, linked or removed is no log."""


def logs(effects: Sequence[Effect], reads: FileReads) -> frozenset[str]:
    """Return the files that look like logs, because the pipeline only appends to them and nobody reads them.

    The result has their masked paths, such as `out/<uuid>.log`, in which placeholders replace numbers and ids.
    """
    kinds: dict[str, set[CallKind]] = defaultdict(set)
    files: dict[str, set[Path]] = defaultdict(set)
    # The effect of a rename has the new name, so only these paths show that a file lost its old one.
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
    """Return, for the report, one sentence on each file that looks like a log.

    `taken` is the result of `logs`: the masked paths, such as `out/<uuid>.log`, of these files.
    """
    writes = Counter(each.where for each in effects if each.where in taken and each.kind is CallKind.WRITE)
    return [
        f"{name} is only appended to and never read: its {count} write(s) are tried last; "
        f"--ignore {_PLACEHOLDER.sub('*', name)} leaves them out"
        for name, count in sorted(writes.items())
    ]
