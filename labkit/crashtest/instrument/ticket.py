"""Tells a process under test about its run: whose effects count, where they are logged, and where the process stops."""

from dataclasses import dataclass
from typing import Any

from labkit.crashtest.instrument.effects import Point
from labkit.crashtest.project import Project


@dataclass(frozen=True)
class Ticket:
    """The facts that a process must know about its run."""

    file: str
    """The user's file."""
    log: str
    driver: int
    armed: Point | None = None
    evidence: str = ""
    then: str = "crash"
    """What happens at the armed point.

    `crash`: the process stops and is killed with the whole driver. `stop`: it stops and continues later.
    `task`: it kills itself alone.
    """
    folders: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """With `file`, `folders` and `more` the user's project; an effect belongs to the sink if its code is on the
    stack.
    """
    asks: str = ""
    """The folder in which the process requests a reading at each point; if empty, it requests none."""
    lines: bool = False
    """Whether source lines of the project are recorded as well."""

    @property
    def project(self) -> Project:
        """The user's project, whose effects count."""
        return Project(self.file, self.folders, self.more, self.ignored)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for another process."""
        return vars(self) | {"armed": self.armed and self.armed.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Ticket":
        """Return the ticket that `to_json` has written."""
        lists = {name: tuple(data[name]) for name in ("folders", "more", "ignored")}
        armed = data["armed"] and Point.from_json(data["armed"])
        return cls(**{**data, **lists, "armed": armed})
