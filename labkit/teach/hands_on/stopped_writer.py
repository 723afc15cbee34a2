"""A small real writer that can be stopped right before its write: `python -m labkit.teach.hands_on.stopped_writer`.

Its arguments are the kind of store (`file`, `table`, `owned` for a table with an epoch row, or `topic`) and the
store's path or address. It prints `ready`, waits for a line on standard input, writes three rows, and prints `written`
or `refused`.
"""

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

ROWS = (0, 1, 2)
WRITTEN, REFUSED = "written", "refused"
TABLES = ("CREATE TABLE IF NOT EXISTS rows (id INTEGER)", "CREATE TABLE IF NOT EXISTS owner (epoch INTEGER)")
Write = Callable[[], str]
"""A function that writes the rows `ROWS` and returns `written` or `refused`."""


def file(path: str) -> Write:
    """Read a file, and return a function that later appends the rows of `ROWS` that the file lacked at this time.

    The function does not read the file again, so it repeats the rows that another writer has added meanwhile.
    """
    with Path(path).open("a+", encoding="utf-8") as there:
        there.seek(0)
        stored = {int(line) for line in there}

    def write() -> str:
        with Path(path).open("a", encoding="utf-8") as there:
            there.writelines(f"{row}\n" for row in ROWS if row not in stored)
        return WRITTEN

    return write


def table(path: str) -> Write:
    """Read a table, and return a function that later inserts the rows of `ROWS` that the table lacked at this time.

    The function does not read the table again, so it repeats the rows that another writer has added meanwhile.
    """
    with closing(sqlite3.connect(path)) as store, store:
        for statement in TABLES:
            store.execute(statement)
        stored = {row for (row,) in store.execute("SELECT id FROM rows")}

    def write() -> str:
        with closing(sqlite3.connect(path)) as store, store:
            missing = [(row,) for row in ROWS if row not in stored]
            store.executemany("INSERT INTO rows VALUES (?)", missing)
        return WRITTEN

    return write


def owned(path: str) -> Write:
    """Store a new epoch, the highest so far, and return a function that later inserts `ROWS` in one transaction.

    The function refuses to write if another writer has stored a higher epoch in the meantime.
    """
    with closing(sqlite3.connect(path)) as store, store:
        for statement in TABLES:
            store.execute(statement)
        store.execute("BEGIN IMMEDIATE")
        ((epoch,),) = store.execute("SELECT coalesce(max(epoch), 0) + 1 FROM owner")
        store.execute("INSERT INTO owner VALUES (?)", (epoch,))

    def write() -> str:
        with closing(sqlite3.connect(path)) as store, store:
            store.execute("BEGIN IMMEDIATE")
            ((now,),) = store.execute("SELECT max(epoch) FROM owner")
            if now != epoch:
                return REFUSED
            store.executemany("INSERT INTO rows VALUES (?)", [(row,) for row in ROWS])
        return WRITTEN

    return write


def topic(place: str) -> Write:
    """Fence earlier producers now, and return a function that later writes the rows `ROWS` in one transaction.

    The broker refuses the transaction if a newer producer has fenced this one. `place` is `address/topic`.
    """
    from labkit.core.records import Observation
    from labkit.stores.kafka.claimed import claim

    address, _, name = place.partition("/")
    write = claim(address, name)
    rows = [Observation(row, "row", row, 0, 1) for row in ROWS]
    return lambda: WRITTEN if write(rows) else REFUSED


STORES: dict[str, Callable[[str], Write]] = {"file": file, "table": table, "owned": owned, "topic": topic}


def main(store: str, place: str) -> None:
    """Print `ready`, wait for a line on standard input, write the rows, and print `written` or `refused`.

    `store` is the name of a function in `STORES`, such as `"file"`, and `place` is its argument.
    """
    write = STORES[store](place)
    print("ready", flush=True)  # noqa: T201  # read by the parent process
    sys.stdin.readline()
    print(write(), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
