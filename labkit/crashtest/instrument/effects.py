"""What a sink does that outlives its process, and the places between such effects at which a job can be killed.

An effect is told from outside of the user's code, by wrappers around what writes
(`labkit.crashtest.instrument.install`). This module holds data only.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput


class Kind(StrEnum):
    """What was done, in one word or two."""

    BEGIN = "begins"
    """The engine has written `offsets/N` and calls the sink (a task of it, or its commit)."""
    RETURN = "returns"
    """The call is over; `commits/N` is not written."""
    COMMITS = "commits/N"
    """The engine has recorded the batch as finished."""
    CREATE = "create"
    """A file is there, empty, or has lost its old content."""
    WRITE = "write"
    """Bytes of a file were handed to the operating system."""
    FSYNC = "fsync"
    RENAME = "rename"
    LINK = "link"
    UNLINK = "unlink"
    MKDIR = "mkdir"
    STATEMENT = "statement"
    """An SQL statement inside a transaction: nothing that survives by itself."""
    SCHEMA = "schema"
    """A table is made or altered; no row lasts by it."""
    COMMIT = "commit"
    """A transaction becomes durable; also a statement outside of any transaction."""
    PREPARE = "prepare"
    """A transaction outlives its session from now on, undecided."""
    ROLLBACK = "rollback"
    SEND = "send"
    """A message is given to a producer, which may hold it back."""
    FLUSH = "flush"
    """Every message given to a producer has reached its server."""
    JVM = "jvm write"
    """A DataFrame is written by the JVM. What happens inside is not seen, so nothing is cut there."""
    NETWORK = "network"
    """Bytes were sent to another host or process. What became of them there is not seen."""
    LINE = "line"
    """A line of the project is about to be executed. Nothing has happened; it is a place beside what is not seen."""
    UNSEEN = "unseen write"
    """What a line must have done, since rows changed between it and the next one. Nothing within it is cut."""


LISTENER = "listener"
"""Where what a listener of the query does belongs: the engine calls it when the batch is recorded as finished."""

RECOVER = "recover"
"""Where what the file's own `recover(checkpoint)` does, before the query starts, belongs."""

DURABLE = frozenset({Kind.WRITE, Kind.RENAME, Kind.LINK, Kind.COMMIT, Kind.FLUSH, Kind.JVM, Kind.UNSEEN})
"""What makes rows last or readable: a sink that has one of these still to do has not finished its batch."""

SHOWING = DURABLE | {Kind.CREATE, Kind.UNLINK, Kind.SCHEMA, Kind.ROLLBACK}
"""What can change what a reader reads: a file that is made anew or removed takes its old rows away, a table that gets
another name brings rows with it."""

DECISIVE = DURABLE | {Kind.PREPARE, Kind.UNLINK, Kind.CREATE}
"""Around these a crash matters most."""


@dataclass(frozen=True)
class Effect:
    """One durable effect of one call of the sink, with an identity that is the same in every run that does the same."""

    batch: int
    where: str
    """`call` (foreachBatch), `task P` (a writer's partition P), `commit` (a writer's, on the driver), `recover`."""
    number: int
    """From 1, in the order in which this call of the sink did them."""
    kind: Kind
    target: str
    line: int
    """Of the user's code; 0: none of it was running."""
    nth: int = 1
    """Which effect of its line it is in this call: with the line it tells it from others, whatever other lines do."""
    driver: int = 1
    failed: bool = False
    """Whether it raised."""
    file: str = ""
    """The file of the project that has the line; empty: the sink's own file."""
    late: bool = False
    """Whether the call to which it belongs had returned before it began."""
    step: int = 0
    """Of a line: how many lines were executed since effect `number`. With `number` the order within a call."""

    @property
    def place(self) -> tuple[int, int]:
        """Its place in the order of its call."""
        return self.number, self.step

    def by(self) -> str:
        """Which line has the effect, in words."""
        of = f" of {self.file}" if self.file else ""
        return f" by line {self.line}{of}" if self.line else ""

    def said(self) -> str:
        """The effect in a few words."""
        by = self.by()
        target = self.target.rpartition("/")[2] if self.target.startswith("/") else self.target
        return f"{self.kind}{f' of {target}' if target else ''}{by}"

    def to_json(self) -> dict[str, Any]:
        """Plain data, for a log."""
        return vars(self) | {"kind": self.kind.value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Effect":
        """The effect that `to_json` gave."""
        names = ("batch", "where", "number", "target", "line", "nth", "driver", "failed")
        known = {name: data[name] for name in names}
        more = {name: data[name] for name in ("file", "late", "step") if name in data}
        return cls(kind=Kind(data["kind"]), **known, **more)

    def point(self, side: "Side") -> "Point":
        """The place on one side of this effect. What a line does unseen begins where the line does."""
        kind = Kind.LINE if self.kind is Kind.UNSEEN else self.kind
        return Point(self.batch, self.where, self.number, kind, side, self.line, self.nth, self.file, self.step)


class Side(StrEnum):
    """On which side of an effect."""

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
        """Its place in the order of its call."""
        return self.number, self.step

    @property
    def id(self) -> str:
        """Short and stable: `b1.call.3.after`, `b0.task0.begins`, `b2.engine.commits`, `b0.call.line34.before`."""
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
        """Whether this is the place on this side of an effect (before it has happened, its kind may not be known)."""
        if (self.batch, self.where, self.side) != (effect.batch, effect.where, side):
            return False
        if self.kind in BOUNDS or effect.kind in BOUNDS:
            return self.kind is effect.kind
        if (self.kind is Kind.LINE) is not (effect.kind is Kind.LINE):
            return False
        return (self.file, self.line, self.nth) == (effect.file, effect.line, effect.nth)

    def to_json(self) -> dict[str, Any]:
        """Plain data, for another process."""
        return self._asdict() | {"kind": self.kind.value, "side": self.side.value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Point":
        """The point that `to_json` gave."""
        return cls(**{**data, "kind": Kind(data["kind"]), "side": Side(data["side"])})


BOUNDS = frozenset({Kind.BEGIN, Kind.RETURN, Kind.COMMITS})
"""Not effects of the sink, but the edges of its calls and of the engine's own log."""

_ID = re.compile(
    r"(?:large\.)?b(\d+)\.(call|commit|recover|task\d+|engine)\.(?:(begins|returns|commits)|(\d+)\.(before|after)"
    r"|line\d+(?:\.\d+)?(?:@[\w-]+)?\.before)"
)


def check_id(text: str) -> str:
    """The id of a point as a person typed it. Raises `InvalidInput` for another form."""
    if not _ID.fullmatch(text):
        raise InvalidInput(f"--only {text[:60]}: write an id of a point from a report, as in b1.call.3.after.")
    return text
