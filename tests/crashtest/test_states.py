"""What counts as an equal state of a pipeline's files, on real files."""

import array
import errno
import fcntl
import os
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from labkit.crashtest.blackbox import states as states_of_files
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.states import Comparison, RunFiles, State, as_read
from labkit.host.syscalls.calls import Call, CallKind


class Files:
    """A folder whose files are followed in a run, from before the first change."""

    def __init__(self, folder: Path, *, by_meaning: bool = False) -> None:
        self._folder, self._files = folder, RunFiles([folder], by_meaning=by_meaning)

    def look(self, kind: CallKind, path: str, target: str = "", name: str = "") -> State:
        """The state just before an effect on files of the folder; `name` is that of the call."""
        paths = [str(self._folder / each) if each else "" for each in (path, target)]
        effect = Effect(Call(1, 9, 9, kind, name or str(kind), *paths, 0, 0.0), path, 1)
        return self._files.look(effect, Namer([self._folder]))

    def prevented(self) -> None:
        self._files.prevented()


def taken(folder: Path, *contents: dict[str, str]) -> list[State]:
    """The states of a folder whose files get these contents, one set after the other."""
    files, found = Files(folder), []
    for path in dict.fromkeys(path for each in contents for path in each):
        files.look(CallKind.CREATE, path)
    for each in contents:
        for path, text in each.items():
            (folder / path).write_text(text)
        found.append(files.look(CallKind.EXIT, ""))
    return found


def learned(*states: State) -> Comparison:
    """A comparison that has seen these states at the same point."""
    comparison = Comparison()
    comparison.learn([{"exit": each} for each in states])
    return comparison


def set_no_dump(file: Path) -> None:
    """Do as `chattr +d` does."""
    with file.open() as opened:
        fcntl.ioctl(opened, 0x40086602, array.array("l", [0x80]))


CHANGES = {
    "contents": lambda file: file.write_text("2\n"),
    "a name": lambda file: file.rename(file.with_name("b")),
    "the mode": lambda file: file.chmod(0o700),
    "the owner": lambda file: os.chown(file, -1, next(each for each in (*os.getgroups(), 7) if each != os.getgid())),
    "the flags": set_no_dump,
    "a second name": lambda file: file.with_name("b").hardlink_to(file),
    "a time that was set": lambda file: os.utime(file, (1, 1)),
    "no file": lambda file: file.unlink(),
    "a folder": lambda file: file.with_name("c").mkdir(),
    "a link": lambda file: file.with_name("c").symlink_to("a"),
}


REFUSED = {
    "the owner": ("This user is neither root nor in a second group.", (errno.EPERM,)),
    "the flags": ("This file system has no flags.", (errno.ENOTTY, errno.EOPNOTSUPP)),
}
"""Changes that a user may not make or a file system does not know: what is missing, and the errors that say so."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_state_differs_by_all_that_a_program_may_ask_of_a_file(tmp_path: Path, change: str) -> None:
    file, files = tmp_path / "a", Files(tmp_path)
    assert files.look(CallKind.CREATE, "a") == {}
    file.write_text("1\n")
    before = files.look(CallKind.RENAME, "a", "b")
    assert before == files.look(CallKind.MKDIR, "c") == files.look(CallKind.SYNC, ".") != {}
    try:
        CHANGES[change](file)
    except OSError as error:
        if change not in REFUSED or error.errno not in REFUSED[change][1]:
            raise
        pytest.skip(REFUSED[change][0])  # with LABKIT_REQUIRE=all, as in CI, a failure
    comparison = Comparison()
    assert comparison.key(files.look(CallKind.EXIT, "")) != comparison.key(before)


def test_a_time_that_was_set_is_state_until_the_file_is_written_again(tmp_path: Path) -> None:
    file, files, key = tmp_path / "a", Files(tmp_path), Comparison().key
    files.look(CallKind.CREATE, "a")
    file.write_text("1\n")
    os.utime(file, ns=(5, 5))
    plain = key(files.look(CallKind.ATTRIBUTES, "a", name="utimensat"))
    assert key(files.look(CallKind.MKDIR, "c")) == plain  # a kill came first, and the call never happened
    os.utime(file, ns=(7, 7))
    touched = key(files.look(CallKind.RENAME, "a", "b"))
    assert touched != plain
    file.rename(tmp_path / "b")
    assert key(files.look(CallKind.SYNC, ".")) != touched
    files.look(CallKind.WRITE, "b")
    (tmp_path / "b").rename(file)
    assert key(files.look(CallKind.EXIT, "")) == plain


def test_a_copy_is_no_second_name(tmp_path: Path) -> None:
    """Who writes to one of two names writes to the other as well."""
    seen = []
    for number, make in enumerate((shutil.copy, os.link)):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = Files(folder)
        files.look(CallKind.LINK, "a", "b")
        (folder / "a").touch()
        make(folder / "a", folder / "b")
        seen.append(files.look(CallKind.EXIT, ""))
    assert seen[0].keys() == seen[1].keys() == {"a", "b"}
    assert seen[0] != seen[1]


def test_what_a_folder_holds_moves_with_it(tmp_path: Path) -> None:
    files, stage = Files(tmp_path), tmp_path / "stage"
    stage.mkdir()
    (stage / "a").write_text("1\n")
    assert files.look(CallKind.RENAME, "stage", "v") == {}
    stage.rename(tmp_path / "v")
    assert set(files.look(CallKind.EXIT, "")) == {"stage", "stage/a", "v", "v/a"}


def test_ids_in_names_caches_and_the_name_of_the_folder_are_not_compared(tmp_path: Path) -> None:
    seen = []
    for name in ("tmpabcdefgh", "tmp12345678"):
        folder = tmp_path / f"copy of {name}"
        (folder / "__pycache__").mkdir(parents=True)
        files = Files(folder)
        files.look(CallKind.CREATE, name)
        files.look(CallKind.CREATE, "__pycache__/a")
        (folder / name).write_text(f"{folder}/{'x' * 9}")
        (folder / "__pycache__" / "a").touch()
        seen.append(files.look(CallKind.EXIT, ""))
    one, two = map(learned({}).key, seen)
    assert one == two
    assert len(seen[0]) == 1


@pytest.mark.parametrize(
    ("one", "other", "third", "is_equal"),
    [
        ("9 at 1764190439123", "9 at 1764190439999", "9 at 1764190440000", True),
        ("9 at 1764190439123", "9 at 1764190439999", "8 at 1764190440000", False),
        ("9 at noon", "9 at nine", "8 at noon", True),  # nothing is known of it but its size
        ("9 at noon", "9 at nine", "8", False),
        ("9 at noon", "9 at six", "8", True),  # nothing is known of it but whether it is empty
        ("9 at noon", "9 at six", "", False),
    ],
)
def test_contents_that_differ_by_chance_are_compared_as_far_as_they_agree(
    tmp_path: Path, one: str, other: str, third: str, is_equal: bool
) -> None:
    first, second, last = taken(tmp_path, {"a": one}, {"a": other}, {"a": third})
    comparison = Comparison()
    assert comparison.key(first) != comparison.key(second)
    longest = {"write a #1": first, "exit": first}
    assert comparison.learn([longest, {"write a #1": second}, {"write b #1": {}}]) == [first, first]
    assert comparison.key(first) == comparison.key(second)
    assert (comparison.key(last) == comparison.key(first)) is is_equal
    assert comparison.blurred() == ([] if "1764" in one else ["a"])
    assert comparison.key(last, left_out={"a"}) == comparison.key({})


ONE, TWO = "123e4567-e89b-12d3-a456-426614174000", "00112233-4455-6677-8899-aabbccddeeff"


@pytest.mark.parametrize(("owner", "noted", "is_equal"), [(TWO, TWO, True), (TWO, ONE, False), (ONE, TWO, False)])
def test_ids_may_differ_but_those_that_were_equal_must_be_equal(
    tmp_path: Path, owner: str, noted: str, is_equal: bool
) -> None:
    """A start may compare the id in one file with that in another."""
    states = taken(tmp_path, {"owner": ONE, "work": f"{ONE} 7"}, {"owner": owner, "work": f"{noted} 7"})
    one, other = map(learned(*states).key, states)
    assert (one == other) is is_equal


@pytest.mark.parametrize(("name", "content", "is_equal"), [(TWO, "1", True), (TWO, "2", False), ("other", "1", False)])
def test_one_more_file_is_a_new_state_unless_only_its_name_differs(
    tmp_path: Path, name: str, content: str, is_equal: bool
) -> None:
    """Each crash may leave one more temporary file, so otherwise new states would never end."""
    states = taken(tmp_path, {f"part-{ONE}": "1"}, {f"part-{name}": content})
    one, other = map(learned({}).key, states)
    assert (one == other) is is_equal


@pytest.mark.parametrize(("value", "is_equal"), [(1, True), (2, False)])
def test_that_a_database_counts_its_transactions_makes_no_new_state(tmp_path: Path, value: int, is_equal: bool) -> None:
    files = Files(tmp_path)
    files.look(CallKind.CREATE, "rows.db")
    states = []
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        fill, change, restore = "INSERT INTO rows VALUES (1)", "UPDATE rows SET id = 3", f"UPDATE rows SET id = {value}"
        for command in ("CREATE TABLE rows (id)", fill, change, restore):
            with database:
                database.execute(command)
            states.append(files.look(CallKind.EXIT, ""))
    keys = list(map(learned({}).key, states))
    assert keys[1] not in (keys[0], keys[2])
    assert (keys[1] == keys[3]) is is_equal


def test_sqlite_reads_the_same_while_pages_move_from_the_log_into_the_database(tmp_path: Path) -> None:
    files, states, others = Files(tmp_path, by_meaning=True), [], []
    for name in ("rows.db", "rows.db-wal"):
        files.look(CallKind.CREATE, name)
    with closing(sqlite3.connect(tmp_path / "rows.db", isolation_level=None)) as database:
        for setting in ("journal_mode = wal", "wal_autocheckpoint = 0"):
            database.execute(f"PRAGMA {setting}")
        for command in ("CREATE TABLE rows (id)", "INSERT INTO rows VALUES (1)", "INSERT INTO rows VALUES (2)"):
            database.execute(command)
            others.append(files.look(CallKind.WRITE, "rows.db-wal"))
        database.execute("PRAGMA wal_checkpoint(FULL)")
        states.append(files.look(CallKind.WRITE, "rows.db"))
    states.append(files.look(CallKind.UNLINK, "rows.db-wal"))
    states.append(files.look(CallKind.CREATE, "done"))
    read = [as_read(each, ()) for each in (*others, *states)]
    assert read[2] == read[3] == read[4] == read[5]
    assert len({*read}) == 3
    (tmp_path / "done").touch()
    made = files.look(CallKind.EXIT, "")
    assert as_read(made, ()) not in read
    assert as_read(made, {"done"}) == read[5]


def test_only_sqlite_s_own_log_is_a_part_of_its_database(tmp_path: Path) -> None:
    files, read = Files(tmp_path, by_meaning=True), []
    for name in ("rows", "rows-wal"):
        files.look(CallKind.CREATE, name)
    for text in ("1", "2"):
        (tmp_path / "rows").write_text("1")
        (tmp_path / "rows-wal").write_text(text)
        read.append(as_read(files.look(CallKind.WRITE, "rows-wal"), ()))
    files.look(CallKind.ATTRIBUTES, "rows", name="utimensat")
    os.utime(tmp_path / "rows", ns=(1, 1))
    read.append(as_read(files.look(CallKind.EXIT, ""), ()))
    assert len(set(read)) == 3


def test_a_log_of_sqlite_may_hold_the_path_of_the_users_folder(tmp_path: Path) -> None:
    """The path is left out of what is compared, but the checksums are about the whole pages."""
    files, states = Files(tmp_path), []
    for name in ("rows.db", "rows.db-wal"):
        files.look(CallKind.CREATE, name)
    with closing(sqlite3.connect(tmp_path / "rows.db", isolation_level=None)) as database:
        for setting in ("journal_mode = wal", "wal_autocheckpoint = 0"):
            database.execute(f"PRAGMA {setting}")
        database.execute("CREATE TABLE seen (name)")
        for name in (f"{tmp_path}/input/part-1", "second", "third"):
            database.execute("INSERT INTO seen VALUES (?)", (name,))
            states.append(files.look(CallKind.EXIT, ""))
    assert len(set(map(learned({}).key, states))) == 3


def test_two_writes_within_one_tick_of_the_clock_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels before 6.13 count times in ticks of some milliseconds."""
    monkeypatch.setattr(states_of_files, "_signature", lambda _: (1,))
    files = Files(tmp_path)
    files.look(CallKind.CREATE, "a")
    found = []
    for text in ("1", "2"):
        (tmp_path / "a").write_text(text)
        found.append(files.look(CallKind.WRITE, "a"))
    assert found[0]["a"].now != found[1]["a"].now


@pytest.mark.parametrize(("named", "is_equal"), [(ONE, True), (TWO, False)])
def test_an_id_in_a_name_belongs_to_an_equal_one_in_a_file(tmp_path: Path, named: str, is_equal: bool) -> None:
    """A manifest that names a file that is gone differs from one whose file is there."""
    states = []
    for number, (kept, listed) in enumerate(((TWO, TWO), (ONE, named))):
        folder = tmp_path / str(number)
        folder.mkdir()
        other = "data-ffffffff-0000-4455-6677-8899aabbccdd"
        states += taken(folder, {f"data-{kept}": "1 apple", other: "", "manifest": listed})
    one, two = map(learned(*states).key, states)
    assert (one == two) is is_equal


def test_the_order_of_the_last_writes_is_known_and_a_rename_keeps_it(tmp_path: Path) -> None:
    files, comparison = Files(tmp_path), Comparison()
    orders = []
    for path in ("a", "b", "new"):
        files.look(CallKind.CREATE, path)
        (tmp_path / path).write_text(path)
    files.look(CallKind.WRITE, "a")
    orders.append(comparison.order(files.look(CallKind.RENAME, "new", "b")))
    (tmp_path / "new").rename(tmp_path / "b")
    orders.append(comparison.order(files.look(CallKind.WRITE, "b")))
    files.prevented()
    orders.append(comparison.order(files.look(CallKind.WRITE, "b")))
    orders.append(comparison.order(files.look(CallKind.EXIT, "")))
    assert orders == [(each, ()) for each in (("b", "new", "a"), ("b", "a"), ("b", "a"), ("a", "b"))]


NOW = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.{{}}Z"


@pytest.mark.parametrize("text", ["1764029102.{}", "1764029102{}", pytest.param(NOW, id="now")])
def test_the_order_of_times_in_contents_is_known(tmp_path: Path, text: str) -> None:
    times = (("123", "124"), ("130", "199"), ("200", "150"), ("201", "201"))
    states = taken(tmp_path, *({"a": f"at {text.format(one)}", "b": f"at {text.format(two)}"} for one, two in times))
    comparison = learned(*states)
    assert len(set(map(comparison.key, states))) == 1
    orders = list(map(comparison.order, states))
    assert orders[0] == orders[1]
    assert len(set(orders)) == 3
    assert comparison.blurred() == []


@pytest.mark.parametrize("change", ["the mode", "a second name"])
@pytest.mark.parametrize("texts", [("at 1764190439123", "at 1764190439999"), ("at noon", "at six")])
def test_where_contents_differ_by_chance_attributes_still_count(
    tmp_path: Path, texts: tuple[str, str], change: str
) -> None:
    file, files, states = tmp_path / "a", Files(tmp_path), []
    files.look(CallKind.CREATE, "a")
    for text in texts:
        file.write_text(text)
        states.append(files.look(CallKind.EXIT, ""))
    CHANGES[change](file)
    states.append(files.look(CallKind.EXIT, ""))
    one, other, changed = map(learned(*states[:2]).key, states)
    assert one == other != changed


def test_a_number_that_is_all_of_a_file_is_compared(tmp_path: Path) -> None:
    """In a folder's name it would be the number of an entry, which is masked."""
    states = taken(tmp_path, {"1": ONE, "2": "3"}, {"1": TWO, "2": "3"}, {"1": ONE, "2": "4"})
    one, other, counted = map(learned(*states[:2]).key, states)
    assert one == other != counted
