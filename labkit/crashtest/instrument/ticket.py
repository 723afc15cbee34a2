"""The ticket tells a process under test about its run: whose effects count, where to log them, and where to stop."""

from dataclasses import dataclass
from typing import Any

from labkit.crashtest.instrument.effects import Point
from labkit.crashtest.project import Project


@dataclass(frozen=True)
class Ticket:
    """The facts that a process under test must know about its run."""

    file: str
    """The path of the user's file that defines the sink."""
    log: str
    driver: int
    armed: Point | None = None
    evidence: str = ""
    then: str = "crash"
    """What happens when the process reaches its crash point.

    `crash`: the process stops and is killed with the whole driver. `stop`: it stops and continues later. `task`: it
    kills itself alone.
    """
    folders: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Patterns of files and servers whose effects do not count.

    All others count if code of the user's project (`file`, `folders` and `more`) is on the call stack.
    """
    asks: str = ""
    """The folder in which the process requests a reading at each crash point; if empty, it requests none."""
    lines: bool = False
    """Whether source lines of the user's project are recorded as well as effects."""

    @property
    def project(self) -> Project:
        """The user's project, whose effects count."""
        return Project(self.file, self.folders, self.more, self.ignored)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for another process."""
        return vars(self) | {"armed": self.armed and self.armed.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Ticket":
        """Return the ticket that `to_json` converted to plain data."""
        lists = {name: tuple(data[name]) for name in ("folders", "more", "ignored")}
        armed = data["armed"] and Point.from_json(data["armed"])
        return cls(**{**data, **lists, "armed": armed})
