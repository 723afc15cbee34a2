"""A server whose processes have a store open, perform one request for each line, and can be killed.

    python -I -S store.py MEGABYTES SECONDS

The server's standard input is a Unix socket. For every connection that it receives there it forks a process and answers
with the process's number. It uses only the standard library, because one check forks it some hundred times. It ends,
and its processes end, when the other side closes. A learner's SQL statement may change the database of its trial, but
no other file (`refuse`).
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

LONGEST_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
READING = ("names", "read")
"""The requests that change no file."""
MOST_ROWS = 1000
MOST_TEXT = 100_000
ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_TRANSACTION,
    sqlite3.SQLITE_SAVEPOINT,
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_CREATE_INDEX,
    sqlite3.SQLITE_DROP_TABLE,
    sqlite3.SQLITE_DROP_INDEX,
    sqlite3.SQLITE_REINDEX,
    sqlite3.SQLITE_ALTER_TABLE,
    sqlite3.SQLITE_CREATE_VIEW,
    sqlite3.SQLITE_DROP_VIEW,
    sqlite3.SQLITE_CREATE_TEMP_TABLE,
    sqlite3.SQLITE_DROP_TEMP_TABLE,
    sqlite3.SQLITE_CREATE_TEMP_INDEX,
    sqlite3.SQLITE_DROP_TEMP_INDEX,
    sqlite3.SQLITE_CREATE_TEMP_VIEW,
    sqlite3.SQLITE_DROP_TEMP_VIEW,
    33,  # SQLITE_RECURSIVE, which has no name before Python 3.11
}
FUNCTIONS = {"load_extension", "writefile", "edit", "fts3_tokenizer", "readfile"}


def refuse(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    """Allow a statement only tables and rows: no other file, no setting, no code (SQLite's authorizer callback)."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if second in FUNCTIONS else sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


def opened() -> sqlite3.Connection:
    """Return a connection to the trial's database; outside of BEGIN and COMMIT every statement commits by itself."""
    db = sqlite3.connect("store.db", timeout=0.05, isolation_level=None)
    db.execute("PRAGMA synchronous=OFF")  # a SIGKILL takes nothing that the kernel has
    db.set_authorizer(refuse)
    return db


def _only_reads(sql: object) -> bool:
    """Return whether a statement cannot write: it begins with SELECT."""
    return type(sql) is str and sql.lstrip()[:6].upper() == "SELECT"


class Table:
    """The database of a trial, as the process of the store has it open."""

    def __init__(self) -> None:
        self.db = opened()
        self.may_show = True
        """Whether the last request may have changed what other connections see: not inside of BEGIN and COMMIT."""

    def execute(self, sql: str, parameters: list[Any]) -> list[list[Any]]:
        """Run one SQL statement and return its rows.

        Raises `sqlite3.OperationalError` if there are more than `MOST_ROWS`.
        """
        self.may_show = True
        alone = not self.db.in_transaction
        try:
            rows = self.db.execute(sql, parameters).fetchmany(MOST_ROWS + 1)
        finally:
            # Asked again, because SQLite itself ends some transactions that fail.
            self.may_show = not self.db.in_transaction and not (alone and _only_reads(sql))
        if len(rows) > MOST_ROWS:
            raise sqlite3.OperationalError(f"the statement returned more than {MOST_ROWS} rows; select fewer")
        return [list(row) for row in rows]

    def see(self) -> list[list[Any]]:
        """Return the rows of the table `orders` that a reader sees who starts now."""
        query = "SELECT 1 FROM sqlite_master WHERE lower(name) = 'orders'"
        if not self.db.execute(query).fetchall():
            return []
        # All rows that are asked for are fetched, so that no reading goes on and keeps a lock.
        rows = "SELECT id, item, amount FROM orders LIMIT ?"
        return [list(row) for row in self.db.execute(rows, [MOST_ROWS]).fetchall()]

    def state(self) -> list[str]:
        """Return the committed content as SQL; from equal states a sink continues in the same way."""
        with sqlite3.connect("store.db") as db:
            return list(db.iterdump())

    def left_over(self) -> list[str]:
        """Return no files, because a table leaves none."""
        return []


class Folder:
    """A folder in which every change of a file is visible to everybody at once."""

    def __init__(self, root: str = ".", most: int = MOST_TEXT) -> None:
        """Use the folder `root`; `most` is the number of characters that `read` returns of a file, -1 for all."""
        self.root, self.most, self.may_show = Path(root), most, True

    def file(self, name: object) -> str:
        """Return the name of the real file with this name. Raises `OSError` for a name that could point elsewhere."""
        return named(name)

    def name(self, file: str) -> str:
        """Return the name by which a sink knows a real file."""
        return file

    def names(self) -> list[str]:
        """Return the names of all files, in order."""
        return sorted(self.name(path.name) for path in self.root.iterdir())

    def read(self, name: str) -> str:
        """Return a file's text."""
        with (self.root / self.file(name)).open(encoding="utf-8") as file:
            return file.read(self.most)

    def write(self, name: str, text: str, part: float = 1.0) -> None:
        """Create or replace a file; write only `part` of the text if the process will be killed in the middle."""
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
        """Return the names of the files in `manifest.json`; a reader ignores all other files."""
        try:
            names = json.loads(self.read("manifest.json"))
        except FileNotFoundError:
            return []
        if type(names) is not list or any(type(name) is not str for name in names):
            raise ValueError("manifest.json is not a JSON list of file names")
        return names

    def see(self) -> list[list[Any]]:
        """Return the rows that a reader sees now in the files of the manifest."""
        rows = []
        for name in self.listed():
            for line in filter(None, self.read(name).split("\n")):
                row = json.loads(line)
                rows.append([row["id"], row["item"], row["amount"]])
        return rows

    def state(self) -> list[list[str]]:
        """Return the name and text of each file; from equal states a sink continues in the same way."""
        return [[name, self.read(name)] for name in self.names()]

    def left_over(self) -> list[str]:
        """Return the names of the files that a reader ignores, because `manifest.json` does not contain them."""
        return sorted({*self.names()} - {*self.listed(), "manifest.json"})


class TrialFolder(Folder):
    """The folder of a trial. It tells *Orders* from *orders* also on machines whose file systems do not."""

    def file(self, name: object) -> str:
        return re.sub("[A-Z]", lambda letter: f"={letter[0].lower()}", named(name))

    def name(self, file: str) -> str:
        return re.sub("=(.)", lambda letter: letter[1].upper(), file)


def named(name: object) -> str:
    """Return the name of a file inside the folder unchanged. Raises `OSError` for a name that could point elsewhere."""
    if type(name) is not str or not LONGEST_NAME.fullmatch(name):
        raise OSError(
            "a file name has up to 100 letters, digits, _, - and dots; it must not begin with a dot or contain a folder"
        )
    return name


def answer(store: "Table | Folder", request: list[Any]) -> list[Any]:
    """Perform one request and return `["gave", value]` or `["raised", kind of error, message]`."""
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
    """A process that opens one store after the other, and performs requests on the one that is open."""

    def __init__(self, megabytes: int, seconds: int) -> None:
        """Limit this process's memory and file size; each store that it opens may take `seconds` of CPU time."""
        self._store: Table | Folder | None = None
        self._seconds = seconds
        size = megabytes * 2**20
        limit(resource.RLIMIT_FSIZE, size)
        limit(resource.RLIMIT_AS, 16 * size)
        limit(resource.RLIMIT_CORE, 0)

    def open(self, kind: str, folder: str) -> None:
        """Open the store of this kind in a folder."""
        limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + self._seconds, for_good=False)
        os.chdir(folder)
        self._store = Table() if kind == "table" else TrialFolder()

    def shut(self) -> None:
        """Close the store with everything that its connection has open; the folder stays on disk."""
        if isinstance(self._store, Table):
            self._store.db.close()
        self._store = None
        os.chdir("/")

    def reply(self, line: str) -> str:
        """Return the answer to a request, and whether others may see another content now, as JSON."""
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
    """Set a limit of this process, unless it has a lower one already. One that is not for good can be raised again."""
    hard = resource.getrlimit(what)[1]
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (wanted, wanted if for_good else hard))


def serve(connection: socket.socket, megabytes: int, seconds: int) -> None:
    """Answer one request a line until the other side closes."""
    process = Process(megabytes, seconds)
    with connection, connection.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            lines.write(process.reply(line) + "\n")
            lines.flush()


def main(megabytes: int, seconds: int) -> None:
    """Fork a process for every connection that arrives on standard input, until the other side closes."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets its dead children
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
