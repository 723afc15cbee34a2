"""sqlite3: a commit at the end of a with block, in autocommit, by a script, and in a function that is called."""

import sqlite3


def make(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name)  # effect: *.db
    database.execute("CREATE TABLE rows (id INTEGER)")  # effect: *.db *.db-journal
    return database


def insert(database: sqlite3.Connection) -> None:
    with database:  # effect: with.db with.db-journal
        database.executemany("INSERT INTO rows VALUES (?)", [(1,), (2,)])  # effect: with.db with.db-journal


insert(make("with.db"))
auto = make("auto.db")
auto.isolation_level = None
auto.execute("INSERT INTO rows VALUES (1)")  # effect: auto.db auto.db-journal
script = make("script.db")
script.executescript("INSERT INTO rows VALUES (1); INSERT INTO rows VALUES (2);")  # effect: script.db script.db-journal
