"""What a process under test must know of its run: whose effects count, where they are written down, where it stops."""

from dataclasses import dataclass
from typing import Any

from labkit.crashtest.instrument.effects import Point
from labkit.crashtest.project import Project


@dataclass(frozen=True)
class Ticket:
    """The facts that a process must know of its run."""

    file: str
    """The user's file."""
    log: str
    driver: int
    armed: Point | None = None
    evidence: str = ""
    then: str = "crash"
    """`crash`: stop and be killed with the whole driver. `stop`: stop, and be continued later. `task`: die alone."""
    folders: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """With `file` the user's project: an effect is the sink's if a frame of it is on the stack."""
    asks: str = ""
    """The folder in which the process asks for a reading at each point; empty: the process asks for none."""
    lines: bool = False
    """Whether lines of the project are recorded as places, too."""

    @property
    def project(self) -> Project:
        """The user's project, whose effects count."""
        return Project(self.file, self.folders, self.more, self.ignored)

    def to_json(self) -> dict[str, Any]:
        """Plain data, for another process."""
        return vars(self) | {"armed": self.armed and self.armed.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Ticket":
        """The ticket that `to_json` gave."""
        lists = {name: tuple(data[name]) for name in ("folders", "more", "ignored")}
        armed = data["armed"] and Point.from_json(data["armed"])
        return cls(**{**data, **lists, "armed": armed})
