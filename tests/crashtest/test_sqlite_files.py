"""The bytes of SQLite's files, without what chance and counters write into them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from labkit.crashtest.blackbox.sqlite_files import without_chance

ROWS = 300


def written(folder: Path, mode: str, sync: str, value: str = "y") -> dict[str, bytes]:
    """Return the files of a database in the midst of a transaction that changes many pages."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "rows.db", isolation_level=None)) as database:
        for setting in (f"journal_mode = {mode}", f"synchronous = {sync}", "cache_size = 3"):
            database.execute(f"PRAGMA {setting}")
        database.execute("CREATE TABLE row (id, value)")
        database.execute("BEGIN")
        database.executemany("INSERT INTO row VALUES (?, ?)", [(number, "x" * 100) for number in range(ROWS)])
        database.execute("COMMIT")
        database.execute("BEGIN")
        database.executemany("UPDATE row SET value = ? WHERE id = ?", [(value * 90, number) for number in range(ROWS)])
        return {each.name: each.read_bytes() for each in folder.iterdir() if not each.name.endswith("-shm")}


MODES = [("delete", "off"), ("delete", "full"), ("persist", "full"), ("truncate", "normal"), ("wal", "normal")]


@pytest.mark.parametrize(("mode", "sync"), MODES)
def test_only_chance_is_left_out(mode: str, sync: str, tmp_path: Path) -> None:
    one, two = written(tmp_path / "one", mode, sync), written(tmp_path / "two", mode, sync)
    log = "rows.db-wal" if mode == "wal" else "rows.db-journal"
    assert one[log] != two[log]
    assert {name: without_chance(body) for name, body in one.items()} == {
        name: without_chance(body) for name, body in two.items()
    }
    other = written(tmp_path / "other", mode, sync, value="z")
    assert any(without_chance(body) != without_chance(other[name]) for name, body in one.items())


@pytest.mark.parametrize(("mode", "place"), [("delete", 12), ("wal", 16)])
def test_a_random_number_that_does_not_fit_the_records_makes_another_log(mode: str, place: int, tmp_path: Path) -> None:
    body = written(tmp_path / "one", mode, "off")["rows.db-wal" if mode == "wal" else "rows.db-journal"]
    strange = body[:place] + bytes(4) + body[place + 4 :]
    assert without_chance(strange) != without_chance(body)


def test_every_frame_of_a_committed_log_fits(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute("CREATE TABLE row (id)")
        body = without_chance((tmp_path / "rows.db-wal").read_bytes())
    assert body.count(b"fits") > 2
    assert b"not." not in body


@pytest.mark.parametrize("size", range(0, 60, 7))
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_log_that_was_cut_keeps_what_is_there(mode: str, size: int, tmp_path: Path) -> None:
    body = written(tmp_path / "one", mode, "off")["rows.db-wal" if mode == "wal" else "rows.db-journal"]
    whole = without_chance(body[:size])
    assert len(whole) <= size
    assert whole[:12] == body[: min(12, size)]


def test_other_files_stay_as_they_are() -> None:
    for body in (b"", b"rows", bytes(4096), b"SQLite format 3\0"):
        assert without_chance(body) == body
