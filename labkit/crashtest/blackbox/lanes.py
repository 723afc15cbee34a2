"""Assign each effect of a pipeline to a lane, that is, to its purpose: plan, data, decision and so on.

A table lists paths that known engines and formats write. Each row has a pattern for the masked path (`offsets/<n>`),
which may lie in any folder. The first matching row counts, and the user's rows, `NAME=GLOB`, come before the table. An
effect that no row matches is in the lane `other`.
"""

import fnmatch
import re
from collections.abc import Sequence
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.crashtest.blackbox.effects import Effect, family
from labkit.host.syscalls.calls import CallKind

PLAN, STATE, DATA, DECISION, VISIBLE, SEND, OTHER = ("plan", "state", "data", "decision", "visible", "send", "other")

LANES = {
    PLAN: "which records belong to the next step",
    STATE: "what an operator remembers",
    DATA: "rows, staged or written in place",
    DECISION: "the record that a step counts",
    VISIBLE: "what shows rows to readers after the decision, or the notification of it",
    SEND: "bytes for a server, whose further use is not recorded",
    OTHER: "everything that no row of the table names",
}
"""Every lane with a description of its effects, in the order in which a picture shows them from top to bottom."""

_CHECKSUM = re.compile(r"(?:^|(?<=/))\.([^/]+)\.crc$")
"""A pattern for the name of Hadoop's checksum files, each of which belongs to the lane of the file that it checks."""


class Shape(NamedTuple):
    """One row of the table of lanes: patterns of paths, and the lane of the system calls on such paths."""

    lane: str
    patterns: tuple[str, ...]
    kinds: frozenset[CallKind] = frozenset()


_RENAMES = frozenset({CallKind.RENAME, CallKind.LINK})

SHAPES: tuple[Shape, ...] = (
    Shape(DECISION, ("_spark_metadata/*",)),  # Spark's file sink: its log of committed files
    Shape(PLAN, ("offsets/*", "sources/*")),  # Spark's offset log, and the logs of its sources
    Shape(DECISION, ("commits/*",)),  # Spark's commit log
    Shape(STATE, ("state/*", "*.changelog")),  # Spark's state store
    Shape(DECISION, ("*_metadata",)),  # Flink: a checkpoint is complete
    Shape(STATE, ("chk-<n>", "chk-<n>/*", "savepoint-<hex>", "savepoint-<hex>/*", "shared/*", "taskowned/*")),  # Flink
    Shape(DATA, (".*.inprogress*",), frozenset(CallKind) - _RENAMES),  # Flink's file sink: pending files
    Shape(DECISION, ("_delta_log/*",)),  # Delta's log
    Shape(DECISION, ("metadata/*.metadata.json", "metadata/version-hint.text")),  # Iceberg: a snapshot counts
    Shape(DATA, ("metadata/*.avro",)),  # Iceberg's manifests
    Shape(DECISION, (".hoodie/*",)),  # Hudi's timeline
    Shape(DATA, ("_temporary/*",), frozenset(CallKind) - _RENAMES),  # Hadoop's committers: attempts of tasks
    Shape(DECISION, ("*_SUCCESS",)),  # Hadoop's committers: the job is done
    Shape(DATA, ("_temporary/*",)),  # Hadoop's committers: attempts of tasks
    Shape(VISIBLE, ("part-*",), _RENAMES),  # engines: a finished file gets its name
    Shape(DATA, ("part-*", "*.parquet", "*.orc")),  # engines
    Shape(DECISION, ("*-journal",), frozenset({CallKind.UNLINK, CallKind.TRUNCATE})),  # SQLite: its removal commits
    Shape(PLAN, ("*-journal",)),  # SQLite: how to go back
    Shape(DATA, ("*-wal",)),  # SQLite's log
)  # fmt: skip
"""The rows for known engines and formats. To support another engine, add rows."""


class Lanes:
    """Finds the lane (purpose) of a system call, such as `data` for output, in a table of path patterns."""

    def __init__(self, own: Sequence[str] = ()) -> None:
        """Prepare to look up lanes, first in the user's rows `own` (each a text `NAME=GLOB`), then in labkit's table.

        Raises `InvalidInput` for a text of another form.
        """
        self._shapes = (*map(_own, own), *SHAPES)

    def of(self, effect: Effect) -> str:
        """Return the lane of a system call, which the first matching row of the table names.

        If no row of the table matches, the lane is `send` for a message to a server, and `other` for any other call.
        """
        if effect.kind is CallKind.EXIT:
            return OTHER
        for shape in self._shapes:
            wanted = not shape.kinds or effect.kind in shape.kinds
            if wanted and any(_fits(each, effect) for each in shape.patterns):
                return shape.lane
        return SEND if effect.kind is CallKind.SEND else OTHER

    def names(self) -> list[str]:
        """Return the names of all lanes (purposes, such as `decision`); those that the user added come last."""
        return list(dict.fromkeys([*LANES, *(shape.lane for shape in self._shapes)]))


def _own(text: str) -> Shape:
    name, sign, pattern = text.partition("=")
    if not (sign and name.strip() and pattern.strip()):
        raise InvalidInput(
            f"--lane {text[:60]}: this is not of the form NAME=GLOB; write it as in decision='manifests/*'. labkit's "
            f"lanes (roles of files) are {', '.join(LANES)}, and any other NAME adds a lane."
        )
    return Shape(name.strip(), (pattern.strip(),))


def _fits(pattern: str, effect: Effect) -> bool:
    """Return whether a glob pattern matches the path of a system call, either the whole path or its last parts."""
    named = {effect.where, effect.file, family(effect.where)}
    for path in named | {_CHECKSUM.sub(r"\1", path) for path in named}:
        parts = path.split("/")
        ends = ("/".join(parts[place:]) for place in range(len(parts)))
        if any(fnmatch.fnmatchcase(end, pattern) for end in ends):
            return True
    return False
