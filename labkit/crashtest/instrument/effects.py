"""Defines effects, by which a sink changes something that outlives its process, and the crash points between them.

Wrappers around the functions that write (`labkit.crashtest.instrument.install`) notice effects without a change of the
user's code. This module only defines data.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput


class Kind(StrEnum):
    """The kind of an effect, in one or two words."""

    BEGIN = "begins"
    """Spark has written `offsets/N` and calls the sink, one of its tasks, or its commit."""
    RETURN = "returns"
    """The call of the sink is over; Spark has not yet written `commits/N`."""
    COMMITS = "commits/N"
    """Spark has recorded the batch as finished."""
    CREATE = "create"
    """A file was created empty, or was truncated."""
    WRITE = "write"
    """Bytes of a file were passed to the operating system."""
    FSYNC = "fsync"
    RENAME = "rename"
    LINK = "link"
    UNLINK = "unlink"
    MKDIR = "mkdir"
    STATEMENT = "statement"
    """An SQL statement inside a transaction, which does not survive by itself."""
    SCHEMA = "schema"
    """A statement that creates or alters a table; it makes no row durable."""
    COMMIT = "commit"
    """A transaction becomes durable; also a statement outside any transaction."""
    PREPARE = "prepare"
    """A transaction is prepared: from now on it outlives its session, undecided."""
    ROLLBACK = "rollback"
    SEND = "send"
    """A message is passed to a producer, which may buffer it."""
    FLUSH = "flush"
    """Every message that was passed to a producer has now reached its server."""
    JVM = "jvm write"
    """The JVM writes a DataFrame. The steps inside are not recorded, so no crash point lies within it."""
    NETWORK = "network"
    """Bytes were sent to another host or process; the test does not see what the receiver does with them."""
    LINE = "line"
    """A source line of the project is about to be executed. It changes nothing, but a crash point can lie before it."""
    UNSEEN = "unseen write"
    """A write that no wrapper recorded, inferred because rows changed between one source line and the next.

    No crash point lies within it.
    """


LISTENER = "listener"
"""The value of `Effect.where` for the effects of a query listener, which Spark calls after it has recorded
the batch.
"""

RECOVER = "recover"
"""The value of `Effect.where` for the effects of the user's function `recover`, which runs before the query starts."""

DURABLE = frozenset({Kind.WRITE, Kind.RENAME, Kind.LINK, Kind.COMMIT, Kind.FLUSH, Kind.JVM, Kind.UNSEEN})
"""The kinds of effects that make rows durable or readable.

As long as such an effect is still to come, the sink has not finished its batch.
"""

SHOWING = DURABLE | {Kind.CREATE, Kind.UNLINK, Kind.SCHEMA, Kind.ROLLBACK}
"""The kinds of effects that can change the rows that a reader gets.

A file that is truncated or removed loses its old rows, and a table that is renamed brings its rows with it.
"""

DECISIVE = DURABLE | {Kind.PREPARE, Kind.UNLINK, Kind.CREATE}
"""The kinds of effects before and after which a crash matters most."""


@dataclass(frozen=True)
class Effect:
    """One durable effect of one call of the sink. The same effect can be found again in every run that does
    the same.
    """

    batch: int
    where: str
    """The part of the sink that was running.

    `call` is a foreachBatch function, `task P` a writer's partition P, `commit` a writer's commit in the driver, and
    `recover` the user's function of that name.
    """
    number: int
    """The position among all effects of this call, from 1."""
    kind: Kind
    target: str
    line: int
    """The line of the user's code that was running; 0 if none was."""
    nth: int = 1
    """The position among the effects of the same source line in this call, from 1.

    Line and position together identify the effect, whatever other lines do.
    """
    driver: int = 1
    failed: bool = False
    """Whether the operation raised an error."""
    file: str = ""
    """The file of the user's project that contains the line; empty for the file that defines the sink."""
    late: bool = False
    """Whether the effect began after its call had returned, as in a thread that outlived the call."""
    step: int = 0
    """For a source line, the number of lines executed since the call's last effect; otherwise 0.

    `number` and `step` together give the order within a call.
    """
    torn: str = ""
    """The reason why the effect is several writes, so that a kill may leave a part of it; empty if it is atomic."""

    @property
    def place(self) -> tuple[int, int]:
        """The position of the effect in its call, for sorting: the number of the effect, then that of the line."""
        return self.number, self.step

    def by(self) -> str:
        """Return the source line that causes the effect, as in " by line 12"; empty if no line is known."""
        of = f" of {self.file}" if self.file else ""
        return f" by line {self.line}{of}" if self.line else ""

    def label(self) -> str:
        """Return a short description of the effect: its kind, its target and its source line."""
        by = self.by()
        target = self.target.rpartition("/")[2] if self.target.startswith("/") else self.target
        return f"{self.kind}{f' of {target}' if target else ''}{by}"

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a log."""
        return vars(self) | {"kind": self.kind.value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Effect":
        """Return the effect that `to_json` converted to plain data."""
        names = ("batch", "where", "number", "target", "line", "nth", "driver", "failed")
        known = {name: data[name] for name in names}
        more = {name: data[name] for name in ("file", "late", "step", "torn") if name in data}
        return cls(kind=Kind(data["kind"]), **known, **more)

    def point(self, side: "Side") -> "Point":
        """Return the crash point just before or after this effect, as `side` says.

        For an unseen write, it is the crash point before its source line.
        """
        kind = Kind.LINE if self.kind is Kind.UNSEEN else self.kind
        return Point(self.batch, self.where, self.number, kind, side, self.line, self.nth, self.file, self.step)


class Side(StrEnum):
    """Whether a crash point lies before or after its effect."""

    BEFORE = "before"
    AFTER = "after"


class Point(NamedTuple):
    """A crash point, at which a job can be killed: just before or just after one effect."""

    batch: int
    where: str
    number: int
    kind: Kind
    side: Side
    line: int = 0
    nth: int = 1
    file: str = ""
    step: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """The position of the crash point in its call, for sorting: the number of the effect, then that of the line."""
        return self.number, self.step

    @property
    def id(self) -> str:
        """A short id, which is the same in every run.

        Examples are `b1.call.3.after`, `b0.task0.begins`, `b2.engine.commits`, and `b0.call.line34.before`.
        """
        where = self.where.replace(" ", "")
        if self.kind is Kind.LINE:
            again = f".{self.nth}" if self.nth > 1 else ""
            of = f"@{PurePath(self.file).stem}" if self.file else ""
            return f"b{self.batch}.{where}.line{self.line}{again}{of}.{self.side}"
        if self.kind in BOUNDS:
            return f"b{self.batch}.{where}.{self.kind.value.removesuffix('/N')}"
        return f"b{self.batch}.{where}.{self.number}.{self.side}"

    def __str__(self) -> str:
        if self.kind is Kind.COMMITS:
            return f"batch {self.batch}, after commits/{self.batch} is written"
        if self.kind in BOUNDS:
            return f"batch {self.batch}, {self.where} {self.kind}"
        of = f" of {self.file}" if self.file else ""
        if self.kind is Kind.LINE:
            again = f", time {self.nth}" if self.nth > 1 else ""
            return f"batch {self.batch}, {self.where}, {self.side} line {self.line}{of}{again}"
        by = f" by line {self.line}{of}" if self.line else ""
        return f"batch {self.batch}, {self.where}, {self.side} effect {self.number} ({self.kind}{by})"

    def is_here(self, effect: Effect, side: Side) -> bool:
        """Return whether this crash point lies on the given side of an effect.

        The kind is compared only for boundaries and lines, because it may be unknown before the effect has happened.
        """
        if (self.batch, self.where, self.side) != (effect.batch, effect.where, side):
            return False
        if self.kind in BOUNDS or effect.kind in BOUNDS:
            return self.kind is effect.kind
        if (self.kind is Kind.LINE) is not (effect.kind is Kind.LINE):
            return False
        return (self.file, self.line, self.nth) == (effect.file, effect.line, effect.nth)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for another process."""
        return self._asdict() | {"kind": self.kind.value, "side": self.side.value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Point":
        """Return the crash point that `to_json` converted to plain data."""
        return cls(**{**data, "kind": Kind(data["kind"]), "side": Side(data["side"])})


BOUNDS = frozenset({Kind.BEGIN, Kind.RETURN, Kind.COMMITS})
"""The kinds that are not effects of the sink, but mark the beginning and end of its calls and Spark's own log."""

_ID = re.compile(
    r"(?:large\.)?b(\d+)\.(call|commit|recover|task\d+|engine)\.(?:(begins|returns|commits)|(\d+)\.(before|after)"
    r"|line\d+(?:\.\d+)?(?:@[\w-]+)?\.before)"
)


def check_id(text: str) -> str:
    """Return a crash point's id that the user typed with `--only`. Raises `InvalidInput` if it does not
    look like one.
    """
    if not _ID.fullmatch(text):
        raise InvalidInput(f"--only {text[:60]}: write an id of a point from a report, as in b1.call.3.after.")
    return text
