"""Wrong sinks as strangers write them, each wrong on one axis: the drawn rows, names and numbers of batches find it."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from json import dumps, loads
from typing import Any

import pytest

from labkit.grading.hidden import variants
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.own_sink import axes
from labkit.teach.exercises.registry import find

Row = dict[str, Any]


def orders(db: Any) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, item TEXT, amount INTEGER)")
    db.execute("CREATE TABLE IF NOT EXISTS done (q TEXT, b)")


def insert(db: Any, rows: list[Row]) -> None:
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [*row.values()])


def once(db: Any, known: bool, rows: list[Row], mark: list[Any]) -> None:
    """Rows and marker in the transaction that is open, unless they are there."""
    if not known:
        insert(db, rows)
        db.execute("INSERT INTO done VALUES (?, ?)", mark)
    db.execute("COMMIT")


def is_done(db: Any, query: Any, batch: Any) -> bool:
    return bool(db.execute("SELECT 1 FROM done WHERE q = ? AND b = ?", [query, batch]))


def completes_row_by_row(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """The recovery of a batch that was begun shows a part of it."""
    orders(db)
    if is_done(db, query, batch):
        return
    if is_done(db, f"begun {query}", batch):
        for row in rows:
            if not db.execute("SELECT 1 FROM orders WHERE id = ?", [row["id"]]):
                insert(db, [row])
        db.execute("INSERT INTO done VALUES (?, ?)", [query, batch])
        return
    db.execute("INSERT INTO done VALUES (?, ?)", [f"begun {query}", batch])
    db.execute("BEGIN")
    once(db, False, rows, [query, batch])


def rewinds(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """Of an older checkpoint on, later batches are gone until they come again."""
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount, q, b)")
    db.execute("BEGIN")
    db.execute("DELETE FROM orders WHERE q = ? AND b >= ?", [query, batch])
    for row in rows:
        values = [*row.values(), query, batch]
        db.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", values)
    db.execute("COMMIT")


def prunes(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """Markers go sooner than older checkpoints."""
    orders(db)
    db.execute("BEGIN")
    db.execute("DELETE FROM done WHERE q = ? AND b < ?", [query, batch - 2])
    once(db, is_done(db, query, batch), rows, [query, batch])


def batch_as_text(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """As text 9 comes behind 10."""
    orders(db)
    db.execute("BEGIN")
    [[last]] = db.execute("SELECT max(b) FROM done WHERE q = ?", [query])
    known = last is not None and batch <= int(last)
    once(db, known, rows, [query, str(batch)])


def one_marker(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """The second query takes the marker of the first."""
    orders(db)
    db.execute("BEGIN")
    [*last] = db.execute("SELECT q, b FROM done")
    known = bool(last) and last[0][0] == query and last[0][1] >= batch
    if not known:
        db.execute("DELETE FROM done")
    once(db, known, rows, [query, batch])


def glued(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """Batch 10 of one query is batch 0 of another."""
    orders(db)
    db.execute("BEGIN")
    once(db, is_done(db, f"{query}{batch}", 0), rows, [f"{query}{batch}", 0])


def alike(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """An underscore is any letter."""
    orders(db)
    db.execute("BEGIN")
    found = db.execute("SELECT 1 FROM done WHERE q LIKE ? AND b = ?", [query, batch])
    once(db, bool(found), rows, [query, batch])


def late(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """The first batch is committed with the second."""
    orders(db)
    if batch != 1:
        db.execute("BEGIN")
    if not is_done(db, query, batch):
        insert(db, rows)
        db.execute("INSERT INTO done VALUES (?, ?)", [query, batch])
    if batch:
        with suppress(sqlite3.OperationalError):  # behind a crash nothing was begun
            db.execute("COMMIT")


def quoted(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """An item may have an apostrophe."""
    orders(db)
    db.execute("BEGIN")
    known = is_done(db, query, batch)
    for row in [] if known else rows:
        db.execute(f"INSERT INTO orders VALUES ({row['id']}, '{row['item']}', {row['amount']})")
    once(db, known, [], [query, batch])


def numbers(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """An item may look like a number."""
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, item INTEGER, amount INTEGER)")
    orders(db)
    db.execute("BEGIN")
    once(db, is_done(db, query, batch), rows, [query, batch])


def locks(db: Any, query: str, batch: int, rows: list[Row]) -> None:
    """Nobody can read any more."""
    if batch:
        db.execute("ROLLBACK")
    orders(db)
    db.execute("BEGIN")
    once(db, is_done(db, query, batch), rows, [query, batch])
    db.execute("BEGIN EXCLUSIVE")


def listed(folder: Any) -> list[str]:
    if "manifest.json" not in folder.names():
        return []
    names: list[str] = loads(folder.read("manifest.json"))
    return names


def text(rows: list[Row]) -> str:
    return "\n".join(map(dumps, rows))


def publish(folder: Any, names: list[str]) -> None:
    folder.write("manifest.part", dumps(names))
    folder.rename("manifest.part", "manifest.json")


def writes_what_is_listed(folder: Any, query: str, batch: int, rows: list[Row]) -> None:
    """A batch that comes again tears a file that readers know."""
    own = f"{batch}-of-{query}"
    folder.write(own, text(rows))
    if own not in (names := listed(folder)):
        publish(folder, [*names, own])


def in_the_text(folder: Any, query: str, batch: int, rows: list[Row]) -> None:
    """One name lies within another."""
    own = f"{query}-{batch}"
    known = dumps(listed(folder))
    if own not in known:
        folder.write(own, text(rows))
        publish(folder, [*loads(known), own])


def begins_alike(folder: Any, query: str, batch: int, rows: list[Row]) -> None:
    """A file of the query `orders-1` begins as batch 1 of `orders` does."""
    own, names = f"{query}-{batch}", listed(folder)
    if not any(name.startswith(own) for name in names):
        folder.write(f"{own}.json", text(rows))
        publish(folder, [*names, f"{own}.json"])


def one_digit(folder: Any, query: str, batch: int, rows: list[Row]) -> None:
    """Batch 10 has the name of batch 0."""
    own, names = f"{query}-{batch % 10}", listed(folder)
    if own not in names:
        folder.write(own, text(rows))
        publish(folder, [*names, own])


def padded(folder: Any, query: str, batch: int, rows: list[Row]) -> None:
    """Half of the manifest is whole, and less is not."""
    own, names = f"{batch}-of-{query}", listed(folder)
    if own not in names:
        folder.write(own, text(rows))
        whole = dumps([*names, own])
        folder.write("manifest.json", whole + " " * len(whole))


def by_hand(folder: Any, query: str, batch: int, rows: list[Row]) -> None:
    """An item may have quotes."""
    own, names = f"{batch}-of-{query}", listed(folder)
    if own not in names:
        form = '{"id": %d, "item": "%s", "amount": %d}'
        folder.write(own, "\n".join(form % (*row.values(),) for row in rows))
        publish(folder, [*names, own])


def tries(folder: Any, query: str, batch: int, rows: list[Row]) -> None:
    """A second crash leaves the file of the first try."""
    own, names = f"{batch}-of-{query}", listed(folder)
    if own in {name.partition(".")[0] for name in names}:
        return
    old = sorted(each for each in folder.names() if each.startswith(f"{own}."))
    number = int(old[-1].partition(".")[2]) + 1 if old else 0
    folder.write(f"{own}.{number}", text(rows))
    publish(folder, [*names, f"{own}.{number}"])
    for each in old[-1:]:
        folder.remove(each)


def fenced(db: Any, epoch: int, query: str, newest: Any) -> bool:
    db.execute("INSERT INTO writers VALUES (?, ?)", [query, epoch])
    return newest is not None and int(newest) > epoch


def writers(db: Any, kind: str = "INTEGER") -> None:
    orders(db)
    db.execute(f"CREATE TABLE IF NOT EXISTS writers (q TEXT, e {kind})")
    db.execute("BEGIN IMMEDIATE")


def fenced_once(db: Any, epoch: int, query: str, batch: int, rows: list[Row]) -> str:
    """Who is told that it is fenced is the newest from then on."""
    writers(db)
    [*found] = db.execute("SELECT e FROM writers WHERE q = ?", [query])
    db.execute("DELETE FROM writers WHERE q = ?", [query])
    if fenced(db, epoch, query, found[0][0] if found else None):
        db.execute("COMMIT")
        return "fenced"
    once(db, is_done(db, query, batch), rows, [query, batch])
    return "written"


def epoch_as_text(db: Any, epoch: int, query: str, batch: int, rows: list[Row], kind: str = "TEXT") -> str:
    """As text 9 comes behind 12."""
    writers(db, kind)
    [[newest]] = db.execute("SELECT max(e) FROM writers WHERE q = ?", [query])
    if fenced(db, epoch, query, newest):
        db.execute("ROLLBACK")
        return "fenced"
    once(db, is_done(db, query, batch), rows, [query, batch])
    return "written"


def nothing_to_do(db: Any, epoch: int, query: str, batch: int, rows: list[Row]) -> str:
    """An empty batch of a newer writer fences nobody."""
    return epoch_as_text(db, epoch, query, batch, rows, "INTEGER") if rows else "written"


def guards_each_row(db: Any, epoch: int, query: str, batch: int, rows: list[Row]) -> str:
    """Half of an older writer's batch stays beside the plan of the newer one."""
    orders(db)
    db.execute("CREATE TABLE IF NOT EXISTS writers (q TEXT PRIMARY KEY, e INTEGER)")
    raised = "ON CONFLICT (q) DO UPDATE SET e = max(e, excluded.e)"
    db.execute(f"INSERT INTO writers VALUES (?, ?) {raised}", [query, epoch])
    newest = "(SELECT e FROM writers WHERE q = ?) = ?"
    for row in rows:
        fresh = "NOT EXISTS (SELECT 1 FROM orders WHERE id = ?)"
        db.execute(
            f"INSERT INTO orders SELECT ?, ?, ? WHERE {fresh} AND {newest}", [*row.values(), row["id"], query, epoch]
        )
    return "written" if db.execute(f"SELECT 1 WHERE {newest}", [query, epoch]) else "fenced"


CASES = [
    ("14-table", completes_row_by_row, axes.SECOND),
    ("14-table", rewinds, axes.OLDER),
    ("14-table", prunes, axes.OLDER),
    ("14-table", batch_as_text, axes.OLDER),
    ("14-table", one_marker, axes.QUERY),
    ("14-table", glued, axes.QUERY),
    ("14-table", alike, axes.QUERY),
    ("14-table", late, axes.CRASH),
    ("14-table", quoted, axes.READER),
    ("14-table", numbers, axes.READER),
    ("14-table", locks, axes.READER),
    ("14b-folder", writes_what_is_listed, axes.OLDER),
    ("14b-folder", in_the_text, axes.QUERY),
    ("14b-folder", begins_alike, axes.QUERY),
    ("14b-folder", one_digit, axes.QUERY),
    ("14b-folder", padded, axes.CRASH),
    ("14b-folder", by_hand, axes.CRASH),
    ("14b-folder", tries, axes.LEFT),
    ("14b-writers", fenced_once, axes.STOPPED),
    ("14b-writers", epoch_as_text, axes.STOPPED),
    ("14b-writers", nothing_to_do, axes.STOPPED),
    ("14b-writers", guards_each_row, axes.STOPPED),
]
FAST = list({(exercise, axis): (exercise, sink, axis) for exercise, sink, axis in CASES}.values())
"""One sink for each exercise and axis; the others are slow."""


@pytest.mark.parametrize(
    ("exercise", "sink", "axis"),
    [pytest.param(*each, marks=() if each in FAST else pytest.mark.slow) for each in CASES],
)
def test_a_wrong_sink_of_a_stranger_fails(exercise: str, sink: Callable[..., Any], axis: str) -> None:
    asked = find(exercise)
    answer = InNotebook(asked.answer, {asked.answer: sink})
    drawn = [each for each in variants(exercise, 3) if each["axis"] == axis]
    assert drawn
    found = [asked.judge(answer, each) for each in drawn]
    assert not all(each.passed for each in found)
    assert all(each.message and "\n" not in each.message for each in found)
