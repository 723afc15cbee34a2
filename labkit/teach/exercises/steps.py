"""Run a learner's sink against a store that only records the sink's next request and executes nothing.

As in an engine for durable workflows, the sink is called again and again with the store's earlier replies, and each
call gets one request further. So a sink that looks like an ordinary function can be killed between any two of its
requests, while another process executes them in the real store. The results are untrusted, because they come from a
learner's code.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from labkit.core.errors import MissingSolution
from labkit.teach.exercises.contract import Plain

Request = list[Plain]
"""The name of an operation, followed by its arguments."""
Exchanges = Sequence[Sequence[Any]]
"""The pairs of a request and its answer so far, where an answer is `["gave", value]` or `["raised", kind, text]`."""


class Waits(BaseException):
    """Interrupts a sink at a request without a reply; a `BaseException`, which `except Exception` does not catch."""


class Store:
    """A store that replays recorded replies to a sink's requests, and interrupts the sink when no reply is left."""

    HAS = ""
    """The names of the methods that a sink may call, for the error message on any other call."""

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges, self._at = exchanges, 0
        self.wanted: Request | None = None
        """The first request that has no answer yet."""
        self.differs = False
        """Whether the sink, given the same answers, made another request than before."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"this store has no method {name}; its methods are {self.HAS}")

    def _ask(self, *request: Plain) -> Any:
        if self.wanted is not None or self.differs:
            raise Waits  # a `finally` in the sink makes further requests
        if self._at == len(self._exchanges):
            self.wanted = list(request)
            raise Waits
        asked, (kind, *what) = self._exchanges[self._at]
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
"""The errors of a store by name; any other error of SQLite is a `DatabaseError`."""


class Table(Store):
    """The SQLite database that a sink receives; outside of BEGIN and COMMIT every statement commits at once."""

    HAS = "execute(statement, parameters)"

    def execute(self, sql: str, parameters: Sequence[Plain] = ()) -> list[Any]:
        """Run one statement and return its rows as lists. Raises the errors of `sqlite3`."""
        if isinstance(parameters, dict):
            raise TypeError("parameters must be a list with one value for each ? in the statement")
        return list(self._ask("execute", sql, list(parameters)))


class Folder(Store):
    """The folder of text files of a sink; `rename` is atomic, and a crash in `write` may leave a part of the text."""

    HAS = "names(), read(name), write(name, text), rename(old, new) and remove(name)"

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        return list(self._ask("names"))

    def read(self, name: str) -> str:
        """Return a file's text. Raises `FileNotFoundError`."""
        return str(self._ask("read", name))

    def write(self, name: str, text: str) -> None:
        """Create a file with this text, or replace the text of an existing file."""
        self._ask("write", name, text)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing any file with the new name. Raises `FileNotFoundError`."""
        self._ask("rename", old, new)

    def remove(self, name: str) -> None:
        """Remove a file. Raises `FileNotFoundError`."""
        self._ask("remove", name)


STORES: dict[str, type[Store]] = {"table": Table, "folder": Folder}


def step(sink: Callable[..., Any], kind: str, exchanges: Exchanges, arguments: Sequence[Plain]) -> Any:
    """Run a sink from its beginning, with recorded replies, until it makes a new request or ends; return the event.

    The event is `["do", request]`, `["end", returned text]`, `["raised", text]`, or `["differs"]` if the sink does not
    repeat its earlier requests. `exchanges` are the earlier requests with their replies. If the sink is still an
    unchanged stub, the function returns or raises the same as the stub.
    """
    store = STORES[kind](exchanges)
    reply: list[Any] = []
    try:
        ended = sink(store, *arguments)
    except (NotImplementedError, MissingSolution):
        raise
    except Waits:
        pass
    except Exception as error:  # noqa: BLE001  # every error of the sink ends its batch
        reply = ["raised", f"{type(error).__name__}: {error}"[:300]]
    else:
        if ended is ... and not exchanges and store.wanted is None:
            return ...
        reply = ["end", ended if isinstance(ended, str) else None]
    if store.differs:
        return ["differs"]
    return reply if store.wanted is None else ["do", store.wanted]
