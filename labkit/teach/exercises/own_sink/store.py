"""A server that forks processes, each of which has one store open and performs a sink's requests until it is killed.

    python -I -S store.py MEGABYTES SECONDS

The server's standard input is a Unix socket. For every connection that it receives there it forks a process and answers
with the process's id; the process performs one request for each line. The program uses only the standard library,
because one check forks it some hundred times. The server and its processes end when the other side closes. A learner's
SQL statement may change the database of its trial, but no other file (`refuse`).
"""

import json
import os
import re
import resource
import signal
import socket
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

LONGEST_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
READING = ("names", "read")
"""The requests that change no file."""
MOST_ROWS = 1000
MOST_TEXT = 100_000
ALLOWED = {
    *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE),
    *(sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_REINDEX),
    *(sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_DROP_TABLE),
    *(sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_INDEX, sqlite3.SQLITE_CREATE_VIEW, sqlite3.SQLITE_DROP_VIEW),
    *(sqlite3.SQLITE_CREATE_TEMP_TABLE, sqlite3.SQLITE_CREATE_TEMP_INDEX, sqlite3.SQLITE_CREATE_TEMP_VIEW),
    *(sqlite3.SQLITE_DROP_TEMP_TABLE, sqlite3.SQLITE_DROP_TEMP_INDEX, sqlite3.SQLITE_DROP_TEMP_VIEW),
}
"""The codes of SQLite's authorizer for the actions that a sink's statement may take."""
FUNCTIONS = {"load_extension", "writefile", "edit", "fts3_tokenizer", "readfile"}
"""The SQL functions that a sink's statement may not call."""


def refuse(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    """Return `SQLITE_OK` if SQLite may execute an action, otherwise `SQLITE_DENY` (a function for `set_authorizer`).

    Allowed are only actions on tables, views, indexes and rows, and calls of most functions. If the action calls a
    function, `second` is the function's name.
    """
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if second in FUNCTIONS else sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


def prepare(db: sqlite3.Connection) -> None:
    """Set up a connection so that it is quick, and refuses statements that a sink must not use, such as ATTACH.

    Raises `sqlite3.OperationalError` if another connection holds an exclusive lock.
    """
    # A commit then empties the journal instead of removing it, which is as safe, and saves time in many transactions.
    db.execute("PRAGMA journal_mode=TRUNCATE")
    db.execute("PRAGMA synchronous=OFF")  # SIGKILL loses nothing that was written, synced or not
    db.set_authorizer(refuse)


class Table:
    """A SQLite database as the store of a sink under test, opened by this process."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("store.db", timeout=0.05, isolation_level=None)
        self._is_prepared = False
        self.may_show = True
        """Whether the last request may have changed what other connections see; False inside of a transaction."""

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, in autocommit mode, which is set up at its first use.

        Raises `sqlite3.OperationalError` if another connection holds an exclusive lock at this moment. If the caller is
        the sink under test, it gets this error from its first statement; a reader catches it and tries again later.
        """
        if not self._is_prepared:
            prepare(self._db)
            self._is_prepared = True
        return self._db

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def execute(self, sql: str, parameters: list[Any]) -> list[list[Any]]:
        """Run one SQL statement and return its rows. Raises `sqlite3.OperationalError` for more than `MOST_ROWS`."""
        self.may_show = True
        only_reads = not self.db.in_transaction and type(sql) is str and sql.lstrip()[:6].upper() == "SELECT"
        try:
            rows = self.db.execute(sql, parameters).fetchmany(MOST_ROWS + 1)
        finally:
            # Read again, because SQLite itself ends some transactions that fail.
            self.may_show = not self.db.in_transaction and not only_reads
        if len(rows) > MOST_ROWS:
            raise sqlite3.OperationalError(f"the statement returned more than {MOST_ROWS} rows; select fewer")
        return [list(row) for row in rows]

    def see(self) -> list[list[Any]]:
        """Return the committed rows of the table `orders`, at most `MOST_ROWS`."""
        return orders_in(self.db, MOST_ROWS)

    def left_over(self) -> list[str]:
        """Return an empty list: in contrast to a folder, a database has no leftover files."""
        return []


def orders_in(db: sqlite3.Connection, most: int = -1) -> list[list[Any]]:
    """Return the rows of the table `orders`, at most `most` (-1: all); none if the table does not exist."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE lower(name) = 'orders'").fetchall():
        return []
    # All rows are fetched, because an unfinished query would keep a lock.
    return [list(row) for row in db.execute("SELECT id, item, amount FROM orders LIMIT ?", [most]).fetchall()]


class Folder:
    """A folder of text files as the store of a sink; readers see the rows in the files that `manifest.json` lists."""

    def __init__(self, root: str = ".", most: int = MOST_TEXT) -> None:
        """Use the folder `root`; `read` returns at most `most` characters of a file, or all if `most` is -1."""
        self.root, self.most, self.may_show = Path(root), most, True

    def file(self, name: object) -> str:
        """Return the name on disk of the file that the sink calls `name`; a subclass may use another name on disk.

        Raises `OSError` if the name could be that of a file outside of the folder.
        """
        return named(name)

    def name(self, file: str) -> str:
        """Return the name that the sink uses for a file on disk."""
        return file

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        return sorted(self.name(path.name) for path in self.root.iterdir())

    def read(self, name: str) -> str:
        """Return a file's text."""
        with (self.root / self.file(name)).open(encoding="utf-8") as file:
            return file.read(self.most)

    def write(self, name: str, text: str, part: float = 1.0) -> None:
        """Create or replace a file with this text. With a `part` below 1, write only this fraction, as a kill would."""
        data = text.encode()
        with (self.root / self.file(name)).open("wb") as file:
            file.write(data[: int(len(data) * part)])

    def rename(self, old: str, new: str) -> None:
        """Rename a file atomically."""
        (self.root / self.file(old)).replace(self.root / self.file(new))

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self.root / self.file(name)).unlink()

    def listed(self) -> list[str]:
        """Return the names of the files whose rows readers see, from `manifest.json`; none if this does not exist."""
        try:
            names = json.loads(self.read("manifest.json"))
        except FileNotFoundError:
            return []
        if type(names) is not list or any(type(name) is not str for name in names):
            raise ValueError("manifest.json is not a JSON list of file names")
        return names

    def see(self) -> list[list[Any]]:
        """Return the rows that a reader sees now, from the files that `manifest.json` lists."""
        rows = []
        for name in self.listed():
            for line in filter(None, self.read(name).split("\n")):
                row = json.loads(line)
                rows.append([row["id"], row["item"], row["amount"]])
        return rows

    def left_over(self) -> list[str]:
        """Return the names of the files that readers ignore, because `manifest.json` does not list them."""
        return sorted({*self.names()} - {*self.listed(), "manifest.json"})


class TrialFolder(Folder):
    """A folder for a sink under test, in which *Orders* and *orders* are different files on every operating system."""

    def file(self, name: object) -> str:
        return re.sub("[A-Z]", lambda letter: f"={letter[0].lower()}", named(name))

    def name(self, file: str) -> str:
        return re.sub("=(.)", lambda letter: letter[1].upper(), file)


def named(name: object) -> str:
    """Return a valid file name unchanged. Raises `OSError` if it is too long or could be outside of the folder."""
    if type(name) is not str or not LONGEST_NAME.fullmatch(name):
        raise OSError(
            "this file name is not allowed; use up to 200 letters, digits, _, - and dots, no folder, and no dot at the "
            "beginning"
        )
    return name


def answer(store: "Table | Folder", request: list[Any]) -> list[Any]:
    """Perform `[method, arguments...]`, and return `["gave", result]` or `["raised", exception, message]`."""
    name, *arguments = request
    try:
        return ["gave", getattr(store, name)(*arguments)]
    except sqlite3.Error as error:
        kinds = ("IntegrityError", "OperationalError")
        kind, message = type(error).__name__, str(error)
        if "not authorized" in message or "prohibited" in message:
            message += "; a sink may use tables, views, indexes and rows here, but not PRAGMA, ATTACH or triggers"
        return ["raised", kind if kind in kinds else "DatabaseError", message[:300]]
    except FileNotFoundError as error:
        name = error.filename if isinstance(store, Table) else store.name(str(error.filename))
        return ["raised", "FileNotFoundError", f"there is no {name}"[:300]]
    except OSError as error:
        return ["raised", "OSError", str(error)[:300]]
    except Exception as error:  # noqa: BLE001  # a request of another form
        return ["raised", "", f"{type(error).__name__}: {error}"[:300]]


class Process:
    """Performs requests on a store. The requests arrive as lines of JSON, and at most one store is open at a time."""

    def __init__(self, megabytes: int, seconds: int) -> None:
        """Limit each file of this process to `megabytes` MiB, and its CPU time to `seconds` for each opened store."""
        self._store: Table | Folder | None = None
        self._seconds = seconds
        size = megabytes * 2**20
        limit(resource.RLIMIT_FSIZE, size)
        limit(resource.RLIMIT_AS, 16 * size)
        limit(resource.RLIMIT_CORE, 0)

    def open(self, kind: str, folder: str) -> None:
        """Open the store in the directory `folder`; `kind` is `"table"` or `"folder"`."""
        limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + self._seconds, for_good=False)
        os.chdir(folder)
        self._store = Table() if kind == "table" else TrialFolder()

    def shut(self) -> None:
        """Close the open store; its files stay on disk."""
        if isinstance(self._store, Table):
            self._store.close()
        self._store = None
        os.chdir("/")

    def reply(self, line: str) -> str:
        """Perform the request in a line of JSON, and return a pair as JSON.

        The first item is the result of `answer`. The second one tells whether the request may have changed what readers
        see.
        """
        request = json.loads(line)
        if request[0] in ("open", "shut"):
            getattr(self, request[0])(*request[1:])
            return json.dumps([["gave", None], False])
        assert self._store is not None
        try:
            reply = json.dumps(answer(self._store, request))
        except (TypeError, ValueError) as error:  # a row with bytes, text that is no UTF-8
            reply = json.dumps(["raised", "DatabaseError", str(error)[:300]])
        return f"[{reply},{json.dumps(self._store.may_show and request[0] not in READING)}]"


def limit(what: int, most: int, *, for_good: bool = True) -> None:
    """Limit a resource of this process, such as `RLIMIT_CPU`, to `most`, or to the hard limit if that is lower.

    With `for_good`, the hard limit is lowered too, so that the limit can never be raised again.
    """
    hard = resource.getrlimit(what)[1]
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (wanted, wanted if for_good else hard))


def serve(connection: socket.socket, megabytes: int, seconds: int) -> None:
    """Perform the requests of a connection, one per line, until the client closes it.

    `megabytes` is the largest size of a file in MiB, and `seconds` is the CPU time for each opened store.
    """
    process = Process(megabytes, seconds)
    with connection, connection.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            lines.write(process.reply(line) + "\n")
            lines.flush()


def main(megabytes: int, seconds: int) -> None:
    """Fork a process to serve each connection that arrives on standard input, and reply with the process id.

    Standard input is a socket, and a connection arrives there as a file descriptor. Returns when the client closes the
    socket. `megabytes` and `seconds` limit each process, as in `serve`.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes dead children
    control = socket.socket(fileno=0)
    while True:
        wanted, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not wanted:
            return
        [descriptor] = descriptors
        pid = os.fork()
        if pid == 0:
            control.close()
            connection = socket.socket(fileno=descriptor)
            try:
                serve(connection, megabytes, seconds)
            finally:
                os._exit(0)
        os.close(descriptor)
        control.sendall(json.dumps(pid).encode() + b"\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
