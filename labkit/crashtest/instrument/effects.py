"""Defines effects, by which a sink changes something that outlives its process, and the crash points between them.

Wrappers around the functions that write (`labkit.crashtest.instrument.install`) detect effects from outside the
user's code. This module holds data only.
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
    """The engine has written `offsets/N` and calls the sink, one of its tasks, or its commit."""
    RETURN = "returns"
    """The call is over; `commits/N` is not written."""
    COMMITS = "commits/N"
    """The engine has recorded the batch as finished."""
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
    """Every message that was passed to a producer has reached its server."""
    JVM = "jvm write"
    """The JVM writes a DataFrame. The steps inside are not recorded, so no crash is placed within it."""
    NETWORK = "network"
    """Bytes were sent to another host or process; the test does not see what it does with them."""
    LINE = "line"
    """A source line of the project is about to be executed. It changes nothing, but a crash can be placed before it."""
    UNSEEN = "unseen write"
    """A write inferred for a source line, because rows changed between it and the next one.

    No crash is placed within it.
    """


LISTENER = "listener"
"""The call to which a query listener's effects belong; the engine calls a listener when it has recorded the batch."""

RECOVER = "recover"
"""The call to which effects of the file's own `recover(checkpoint)` belong, which runs before the query starts."""

DURABLE = frozenset({Kind.WRITE, Kind.RENAME, Kind.LINK, Kind.COMMIT, Kind.FLUSH, Kind.JVM, Kind.UNSEEN})
"""The kinds that make rows durable or readable. A sink that still has one to do has not finished its batch."""

SHOWING = DURABLE | {Kind.CREATE, Kind.UNLINK, Kind.SCHEMA, Kind.ROLLBACK}
"""The kinds that can change what a reader reads.

A file that is truncated or removed takes its old rows away, and a renamed table brings rows with it.
"""

DECISIVE = DURABLE | {Kind.PREPARE, Kind.UNLINK, Kind.CREATE}
"""The kinds around which a crash matters most."""


@dataclass(frozen=True)
class Effect:
    """One durable effect of one call of the sink, with an identity that is the same in every run that does the same."""

    batch: int
    where: str
    """`call` (foreachBatch), `task P` (a writer's partition P), `commit` (a writer's, on the driver), or `recover`."""
    number: int
    """The position among the effects of this call, from 1."""
    kind: Kind
    target: str
    line: int
    """The line of the user's code that was running; 0 if none was."""
    nth: int = 1
    """The position among the effects of the same line in this call, from 1.

    With the line it identifies the effect, whatever other lines do.
    """
    driver: int = 1
    failed: bool = False
    """Whether the operation raised an error."""
    file: str = ""
    """The file of the project that contains the line; empty for the sink's own file."""
    late: bool = False
    """Whether the effect began after its call had returned."""
    step: int = 0
    """The number of lines executed since effect `number`; 0 unless this is a line.

    Both give the order within a call.
    """
    torn: str = ""
    """Why the effect is several writes, between which a kill leaves a part of it; empty if it is one."""

    @property
    def place(self) -> tuple[int, int]:
        """The effect's place in the order of its call."""
        return self.number, self.step

    def by(self) -> str:
        """Return the line that causes the effect, in words."""
        of = f" of {self.file}" if self.file else ""
        return f" by line {self.line}{of}" if self.line else ""

    def label(self) -> str:
        """Return the effect in a few words."""
        by = self.by()
        target = self.target.rpartition("/")[2] if self.target.startswith("/") else self.target
        return f"{self.kind}{f' of {target}' if target else ''}{by}"

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a log."""
        return vars(self) | {"kind": self.kind.value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Effect":
        """Return the effect that `to_json` has written."""
        names = ("batch", "where", "number", "target", "line", "nth", "driver", "failed")
        known = {name: data[name] for name in names}
        more = {name: data[name] for name in ("file", "late", "step", "torn") if name in data}
        return cls(kind=Kind(data["kind"]), **known, **more)

    def point(self, side: "Side") -> "Point":
        """Return the point on one side of this effect. For an unseen write it is the point before its line."""
        kind = Kind.LINE if self.kind is Kind.UNSEEN else self.kind
        return Point(self.batch, self.where, self.number, kind, side, self.line, self.nth, self.file, self.step)


class Side(StrEnum):
    """The side of an effect on which a point lies."""

    BEFORE = "before"
    AFTER = "after"


class Point(NamedTuple):
    """A place at which a job can be killed: on one side of one effect."""

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
        """The point's place in the order of its call."""
        return self.number, self.step

    @property
    def id(self) -> str:
        """A short and stable id, as `b1.call.3.after`, `b0.task0.begins`, `b2.engine.commits`,
        `b0.call.line34.before`.
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
        """Return whether this point lies on this side of an effect; its kind may be unknown before it has happened."""
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
        """Return the point that `to_json` has written."""
        return cls(**{**data, "kind": Kind(data["kind"]), "side": Side(data["side"])})


BOUNDS = frozenset({Kind.BEGIN, Kind.RETURN, Kind.COMMITS})
"""The kinds that are not effects of the sink but boundaries of its calls and of the engine's own log."""

_ID = re.compile(
    r"(?:large\.)?b(\d+)\.(call|commit|recover|task\d+|engine)\.(?:(begins|returns|commits)|(\d+)\.(before|after)"
    r"|line\d+(?:\.\d+)?(?:@[\w-]+)?\.before)"
)


def check_id(text: str) -> str:
    """Return the id of a point that the user typed. Raises `InvalidInput` for another form."""
    if not _ID.fullmatch(text):
        raise InvalidInput(f"--only {text[:60]}: write an id of a point from a report, as in b1.call.3.after.")
    return text
