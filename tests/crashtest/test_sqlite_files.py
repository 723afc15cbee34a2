"""What is compared of the files of SQLite: bytes without chance, or what SQLite restores from them and nothing else."""

import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import pytest

from labkit.crashtest.blackbox import sqlite_files
from labkit.crashtest.blackbox.sqlite_files import meaning, with_log, without_chance

ROWS = 300
MODES = [("delete", "off"), ("delete", "full"), ("persist", "full"), ("truncate", "normal"), ("wal", "normal")]


def log_of(mode: str) -> str:
    return "rows.db-wal" if mode == "wal" else "rows.db-journal"


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


def described(files: dict[str, bytes]) -> dict[str, bytes]:
    return {
        name: meaning(body, files["rows.db"] if name.endswith("-journal") else None) for name, body in files.items()
    }


def restored(files: dict[str, bytes], folder: Path) -> bytes:
    """Return the database that the real SQLite makes of these files when it opens them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, body in files.items():
        (folder / name).write_bytes(body)
    with closing(sqlite3.connect(folder / "rows.db", isolation_level=None)) as database:
        rows = []
        if database.execute("SELECT * FROM sqlite_master").fetchall():
            rows = database.execute("SELECT * FROM row ORDER BY rowid").fetchall()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return repr(rows).encode() + meaning((folder / "rows.db").read_bytes())


def bytes_of(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: without_chance(body) for name, body in files.items()}


@pytest.mark.parametrize(("mode", "sync"), MODES)
def test_only_chance_is_left_out(mode: str, sync: str, tmp_path: Path) -> None:
    one, two = written(tmp_path / "one", mode, sync), written(tmp_path / "two", mode, sync)
    assert one[log_of(mode)] != two[log_of(mode)]
    assert described(one) == described(two)
    assert bytes_of(one) == bytes_of(two)
    other = bytes_of(written(tmp_path / "other", mode, sync, value="z"))
    assert any(body != other[name] for name, body in bytes_of(one).items())


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_bytes_without_chance_show_every_length_of_a_log(mode: str, tmp_path: Path) -> None:
    body = written(tmp_path / "one", mode, "full")[log_of(mode)]
    assert len({without_chance(body[:size]) for size in range(0, len(body), 7)}) == len(range(0, len(body), 7))


@pytest.mark.parametrize(("mode", "sync"), MODES)
def test_logs_with_one_description_restore_the_same_database(mode: str, sync: str, tmp_path: Path) -> None:
    files, log = written(tmp_path / "one", mode, sync), log_of(mode)
    body = files[log]
    sizes = [*range(0, len(body), 997), *range(64), len(body) - 8, len(body) - 1, len(body)]
    cut = {size: body[:size] for size in sorted(set(sizes))}
    changed = {-place: body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :] for place in (9, 18, 520, 600, 5000)}
    found, databases = defaultdict(set), set()
    for variant in (cut | changed).values():
        result = restored(files | {log: variant}, tmp_path / "copy")
        found[described(files | {log: variant})[log]].add(result)
        databases.add(result)
    assert [len(each) for each in found.values()] == [1] * len(found)
    # Three kinds of journals restore nothing: empty ones, others that SQLite ignores, and hot ones, which not every
    # reader may remove. And each log may have more than what counts.
    shorter = 32 if mode == "wal" else 0  # such a log has no whole header, and is described by its own bytes
    assert len(databases) <= len(found) <= 2 * len(databases) + 3 + shorter


def test_old_pages_count_only_if_they_differ_from_the_database(tmp_path: Path) -> None:
    files = written(tmp_path / "one", "delete", "off")
    journal, database = files["rows.db-journal"], files["rows.db"]
    assert meaning(journal, database).count(b" page ") > 5
    with closing(sqlite3.connect(tmp_path / "one" / "rows.db")) as opened:
        opened.execute("SELECT count(*) FROM row").fetchone()
    before = (tmp_path / "one" / "rows.db").read_bytes()
    assert before != database
    ignored = b"journal that SQLite ignores"
    assert (meaning(journal, before), meaning(journal[:28], before)) == (b"hot journal and more", b"hot journal")
    assert (meaning(b"", before), meaning(bytes(9), before)) == (ignored, ignored + b" and more")


def test_of_an_uncommitted_transaction_only_counts_that_it_has_begun(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "rows.db", isolation_level=None)) as database:
        for setting in ("journal_mode = wal", "cache_size = 3", "wal_autocheckpoint = 0"):
            database.execute(f"PRAGMA {setting}")
        database.execute("CREATE TABLE row (id)")
        before = (tmp_path / "rows.db-wal").read_bytes()
        assert not meaning(before).endswith(b" and more")
        database.execute("BEGIN")
        database.executemany("INSERT INTO row VALUES (?)", [["x" * 200]] * ROWS)
        during = (tmp_path / "rows.db-wal").read_bytes()
        database.execute("COMMIT")
        after = (tmp_path / "rows.db-wal").read_bytes()
    assert len(before) + 24 + 4096 < len(during)
    for size in (len(during), len(before) + 24 + 4096, len(before) + 9):
        assert meaning(during[:size]) == meaning(before) + b" and more"
    assert meaning(after).startswith(meaning(before))
    assert len(meaning(after)) > len(meaning(before)) + 4096


@pytest.mark.parametrize("place", [12, 20])
def test_a_random_number_that_does_not_fit_the_records_makes_another_log(place: int, tmp_path: Path) -> None:
    mode = "delete" if place == 12 else "wal"
    files = written(tmp_path / "one", mode, "off")
    body = files[log_of(mode)]
    strange = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
    assert described(files | {log_of(mode): strange}) != described(files)
    assert without_chance(strange) != without_chance(body)


def test_a_journal_without_its_database_keeps_its_records(tmp_path: Path) -> None:
    one, two = (written(tmp_path / name, "delete", "full")["rows.db-journal"] for name in ("one", "two"))
    assert one != two
    assert meaning(one) == meaning(two)
    assert meaning(one).count(b"fits") > 2
    for size in range(0, 60, 7):
        assert meaning(one[:size])[:12] == one[: min(12, size)]


def test_a_journal_that_names_a_super_journal_keeps_its_records(tmp_path: Path) -> None:
    files = written(tmp_path / "one", "delete", "full")
    with_name = files["rows.db-journal"] + bytes.fromhex("d9d505f920a163d7")
    assert meaning(with_name, files["rows.db"]).count(b"fits") > 2


def test_a_log_that_is_too_long_to_check_is_described_by_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = written(tmp_path / "one", "wal", "off")["rows.db-wal"]
    assert body not in (meaning(body), without_chance(body))
    monkeypatch.setattr(sqlite_files, "_MOST_CHECKED", len(body) - 1)
    assert meaning(body) == without_chance(body) == body


def test_other_files_stay_as_they_are() -> None:
    for body in (b"", b"rows", bytes(4096), b"SQLite format 3\0"):
        assert meaning(body) == without_chance(body) == body
        assert meaning(body, b"no database") == body
    for body in (b"", b"rows", bytes(4096)):
        assert meaning(body, b"") == body
    assert meaning(b"rows", b"SQLite format 3\0") == b"rows"


def committed(folder: Path) -> list[dict[str, bytes]]:
    """Return a database and its log with two transactions: not yet, in part and wholly copied into the database."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "rows.db", isolation_level=None)) as database:
        for setting in ("journal_mode = wal", "wal_autocheckpoint = 0"):
            database.execute(f"PRAGMA {setting}")
        database.execute("CREATE TABLE row (id, value)")
        for value in "xyz":
            database.execute("BEGIN")
            database.executemany("INSERT INTO row VALUES (?, ?)", [(number, value * 90) for number in range(ROWS)])
            database.execute("COMMIT")
        before, log = ((folder / name).read_bytes() for name in ("rows.db", "rows.db-wal"))
        database.execute("PRAGMA wal_checkpoint(FULL)")
        after = (folder / "rows.db").read_bytes()
    cuts = range(0, len(after) + 1, 4096)
    return [{"rows.db": after[:cut] + before[cut:], "rows.db-wal": log} for cut in cuts]


def test_a_database_with_its_log_is_what_sqlite_makes_of_both(tmp_path: Path) -> None:
    begun = written(tmp_path / "begun", "wal", "normal")
    moments = [begun, *committed(tmp_path / "committed")]
    for each in moments[:2]:
        log = each["rows.db-wal"]
        moments += [each | {"rows.db-wal": log[:cut]} for cut in range(0, len(log), len(log) // 9)]
    seen = set()
    for each in moments:
        mine = without_chance(with_log(each["rows.db"], each["rows.db-wal"]))
        assert restored(each, tmp_path / "restored").endswith(mine)
        seen.add(mine)
    assert len(seen) >= 5
    assert len({with_log(each["rows.db"], each["rows.db-wal"]) for each in committed(tmp_path / "again")}) == 1


def test_a_log_that_is_too_long_to_check_is_not_taken_for_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before, *_, after = committed(tmp_path / "committed")
    monkeypatch.setattr(sqlite_files, "_MOST_CHECKED", len(before["rows.db-wal"]) - 1)
    assert len({with_log(each["rows.db"], each["rows.db-wal"]) for each in (before, after)}) == 2
    assert with_log(before["rows.db"], before["rows.db-wal"]) != with_log(
        before["rows.db"], before["rows.db-wal"] + b"1"
    )
