"""What stands beside a learner's sink: a store that does nothing itself, and says what the sink asks for next.

A sink is called again and again with all answers that it has had so far, and each time gets one request further, as in
an engine for durable workflows. So a sink that looks like an ordinary function can be killed between any two of its
requests, and the store is with whoever answers. Nothing here is trusted: it says what a learner's code wants. This
module must not know what is right.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from labkit.core.errors import MissingSolution
from labkit.teach.exercises.contract import Plain

Request = list[Plain]
"""The name of what is to be done, and its arguments."""
Known = Sequence[Sequence[Any]]
"""Pairs of a request and its answer so far: `["gave", value]` or `["raised", kind, text]`."""


class Waits(BaseException):
    """The sink waits for an answer. No `except Exception` of a sink stops it."""


class Store:
    """A store whose answers come from a list; at its end the sink waits."""

    HAS = ""
    """What a sink may call, for whoever calls something else."""

    def __init__(self, known: Known) -> None:
        self._known, self._at = known, 0
        self.wanted: Request | None = None
        """The first request that has no answer yet."""
        self.differs = False
        """Whether the sink asks for something else than it did before the same answers."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no {name} here, only {self.HAS}")

    def _ask(self, *request: Plain) -> Any:
        if self.wanted is not None or self.differs:
            raise Waits  # a `finally` of the sink goes on asking
        if self._at == len(self._known):
            self.wanted = list(request)
            raise Waits
        asked, (kind, *what) = self._known[self._at]
        self._at += 1
        if asked != list(request):
            self.differs = True
            raise Waits
        if kind == "raised":
            raise ERRORS[what[0]](what[1])
        return what[0]


ERRORS: dict[str, type[Exception]] = {
    "IntegrityError": sqlite3.IntegrityError,
    "OperationalError": sqlite3.OperationalError,
    "DatabaseError": sqlite3.DatabaseError,
    "FileNotFoundError": FileNotFoundError,
    "OSError": OSError,
}
"""What a store raises, by name; any other error of SQLite is a `DatabaseError`."""


class Table(Store):
    """A database of SQLite. Every statement commits by itself, unless it stands between BEGIN and COMMIT."""

    HAS = "execute(statement, parameters)"

    def execute(self, sql: str, parameters: Sequence[Plain] = ()) -> list[Any]:
        """Runs one statement; gives its rows as lists. Raises the errors of `sqlite3`."""
        if isinstance(parameters, dict):
            raise TypeError("parameters are a list, with a value for each ?")
        return list(self._ask("execute", sql, list(parameters)))


class Folder(Store):
    """A folder with files of text. `write` makes or replaces a file piece by piece; `rename` is all or nothing."""

    HAS = "names(), read(name), write(name, text), rename(old, new) and remove(name)"

    def names(self) -> list[str]:
        """The names of all files, in order."""
        return list(self._ask("names"))

    def read(self, name: str) -> str:
        """A file's text. Raises `FileNotFoundError`."""
        return str(self._ask("read", name))

    def write(self, name: str, text: str) -> None:
        """Makes a file with this text, or replaces the text of one."""
        self._ask("write", name, text)

    def rename(self, old: str, new: str) -> None:
        """Gives a file another name; a file that had the name is gone. Raises `FileNotFoundError`."""
        self._ask("rename", old, new)

    def remove(self, name: str) -> None:
        """Removes a file. Raises `FileNotFoundError`."""
        self._ask("remove", name)


STORES: dict[str, type[Store]] = {"table": Table, "folder": Folder}


def step(sink: Callable[..., Any], kind: str, known: Known, arguments: Sequence[Plain]) -> Any:
    """What a sink asks for next: `["do", request]`, `["end", text it returned]`, `["raised", text]`, or `["differs"]`.

    `known` are its requests so far with their answers, `arguments` what comes behind the store. A stub gives what it
    returns. Raises what a stub raises.
    """
    store = STORES[kind](known)
    said: list[Any] = []
    try:
        ended = sink(store, *arguments)
    except (NotImplementedError, MissingSolution):
        raise
    except Waits:
        pass
    except Exception as error:  # noqa: BLE001  # whatever a sink raises ends its batch
        said = ["raised", f"{type(error).__name__}: {error}"[:300]]
    else:
        if ended is ... and not known and store.wanted is None:
            return ...
        said = ["end", ended if isinstance(ended, str) else None]
    if store.differs:
        return ["differs"]
    return said if store.wanted is None else ["do", store.wanted]
