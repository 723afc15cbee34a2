"""What a loss of power may leave: predicted by hand for small programs, and labkit's own files must survive it."""

import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from labkit.crashtest.blackbox import disk as disk_module
from labkit.crashtest.blackbox.disk import ALL_LOST, NAMES_KEPT, NEWEST_KEPT, TORN, bytes_of
from labkit.crashtest.blackbox.power_cut import Journal, State, recording, states_after_power_cut
from labkit.host import durable
from labkit.host.syscalls.calls import Answer, Call, CallKind

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(watched_calls: None, tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    return folder


@contextmanager
def recorded(command: list[str], folder: Path) -> Iterator[Journal]:
    with recording([folder]) as journal:
        journal.watch(command, folder=folder, environment=os.environ, output=folder.with_name("output"))
        yield journal


HELPERS = """
import os
def put(name, content, flags=os.O_CREAT | os.O_TRUNC):
    file = os.open(name, flags | os.O_WRONLY)
    os.write(file, content)
    os.close(file)
def sync(name):
    file = os.open(name, os.O_RDONLY)
    os.fsync(file)
    os.close(file)
"""


@contextmanager
def run(place: Path, program: str) -> Iterator[Journal]:
    text = HELPERS + textwrap.dedent(program)
    with recorded([sys.executable, "-I", "-S", "-c", text], place) as journal:
        assert journal.watched.status == 0
        yield journal


def files(state: State) -> dict[str, bytes]:
    """The files of a state's first folder: their bytes by path."""
    return {name: bytes_of(of) for name, of in state.trees[0].items() if isinstance(of, bytes | Path)}


def left(journal: Journal, point: int | None = None) -> dict[str, dict[str, bytes]]:
    """By its extreme, the files of each state before a point (None: behind everything)."""
    at = len(journal.entries) if point is None else point
    return {state.extreme: files(state) for state in states_after_power_cut(journal, at)}


def test_a_rename_without_a_sync(place: Path) -> None:
    (place / "f").write_bytes(b"old")
    with run(place, "put('.f', b'newest'); os.rename('.f', 'f')") as journal:
        assert left(journal) == {ALL_LOST: {"f": b"old"}, NAMES_KEPT: {"f": b""}, TORN: {"f": b"new"}}
        assert left(journal, 2) == {
            ALL_LOST: {"f": b"old"},
            NAMES_KEPT: {"f": b"old", ".f": b""},
            TORN: {"f": b"old", ".f": b"new"},
        }
        assert left(journal, 0) == {}
        assert (journal.unexplained(), journal.not_modelled()) == ([], {})


def test_only_calls_of_the_asked_kinds_are_decided_and_all_are_recorded(place: Path) -> None:
    decided: list[CallKind] = []

    def decide(call: Call) -> Answer:
        decided.append(call.kind)
        return Answer.GO_ON

    command = [sys.executable, "-I", "-S", "-c", HELPERS + "put('.f', b'newest'); os.rename('.f', 'f')"]
    how = {"folder": place, "environment": os.environ, "output": place.with_name("output")}
    with recording([place]) as journal:
        journal.watch(command, **how, decide=decide, kinds=frozenset({CallKind.RENAME}))
        assert decided == [CallKind.RENAME]
        assert {CallKind.WRITE, CallKind.RENAME} < {entry.call.kind for entry in journal.entries}


@pytest.mark.parametrize(
    ("program", "states"),
    [
        ("put('.f', b'new'); sync('.f'); os.rename('.f', 'f')", {ALL_LOST: {"f": b"old"}}),
        ("put('.f', b'new'); sync('.f'); os.rename('.f', 'f'); sync('.')", {}),
        ("put('f', b'2', os.O_APPEND | os.O_DSYNC)", {}),
        ("put('a', b'1'); os.rename('a', 'b'); os.sync()", {}),
    ],
)
def test_only_what_no_sync_has_reached_is_lost(place: Path, program: str, states: dict[str, object]) -> None:
    (place / "f").write_bytes(b"old")
    with run(place, program) as journal:
        assert left(journal) == states


def test_a_file_may_forget_what_a_later_one_relies_on(place: Path) -> None:
    """The commit log outlives the rows that it tells of."""
    program = """
    put('.rows', b'rows'); os.rename('.rows', 'rows')
    put('.commit', b'1'); os.rename('.commit', 'commit')
    """
    with run(place, program) as journal:
        assert left(journal)[NEWEST_KEPT] == {"commit": b"1"}
        assert left(journal)[NAMES_KEPT] == {"rows": b"", "commit": b""}
        assert left(journal)[ALL_LOST] == {}


def test_what_was_written_in_place(place: Path) -> None:
    (place / "log").write_bytes(b"0123456789")
    program = """
    put('log', b'AB', os.O_APPEND)
    sync('log')
    file = os.open('log', os.O_WRONLY)
    os.pwrite(file, b'wxyz', 2)
    os.ftruncate(file, 8)
    """
    with run(place, program) as journal:
        assert left(journal) == {ALL_LOST: {"log": b"0123456789AB"}, TORN: {"log": b"01wx456789AB"}}
        assert left(journal, 1) == {ALL_LOST: {"log": b"0123456789"}, TORN: {"log": b"0123456789A"}}
        assert journal.unexplained() == []


def test_a_removed_file_may_come_back_and_a_made_folder_may_be_gone(place: Path) -> None:
    (place / "gone").write_bytes(b"x")
    program = """
    os.unlink('gone')
    os.mkdir('made')
    put('made/f', b'y'); sync('made/f'); sync('made')
    """
    with run(place, program) as journal:
        assert left(journal) == {ALL_LOST: {"gone": b"x"}, NEWEST_KEPT: {"gone": b"x", "made/f": b"y"}}


def test_a_file_that_moves_to_another_folder_and_links(place: Path) -> None:
    for name in ("one", "two"):
        (place / name).mkdir()
    (place / "one/f").write_bytes(b"x")
    program = """
    os.rename('one/f', 'two/f'); sync('two')
    os.link('two/f', 'one/g'); os.symlink('g', 'one/s')
    """
    with run(place, program) as journal:
        assert left(journal)[ALL_LOST] == {"two/f": b"x"}
        state = states_after_power_cut(journal, len(journal.entries))[0]
        assert state.sentence == "everything that was not synced is lost: one/g, one/s not there."
        assert journal.unexplained() == []


def test_what_comes_from_outside_of_the_folders(place: Path) -> None:
    place.with_name("outside").write_bytes(b"from outside")
    with run(place, "os.rename('../outside', 'inside')") as journal:
        assert journal.unexplained() == []
        assert left(journal) == {ALL_LOST: {}}


def test_a_state_is_built(place: Path, tmp_path: Path) -> None:
    (place / "kept").mkdir()
    (place / "kept/f").write_bytes(b"kept")
    (place / "s").symlink_to("kept")
    target = tmp_path / "built"
    target.mkdir()
    (target / "stale").mkdir()
    (target / "stale/file").write_text("must go")
    (target / "kept").write_text("a file where a folder belongs")
    with run(place, "put('f', b'new')") as journal:
        for state in states_after_power_cut(journal, len(journal.entries)):
            state.build([target])
            real = {
                str(path.relative_to(target)): path.read_bytes()
                for path in target.rglob("*")
                if path.is_file() and not path.is_symlink()
            }
            assert real == {name: of for name, of in files(state).items() if name != "s"}
            assert (target / "s").readlink() == Path("kept")


def test_what_is_so_already_stays_with_its_rights(place: Path) -> None:
    program = place / "program"
    program.write_bytes(b"#!/bin/sh")
    program.chmod(0o755)
    made = program.stat()
    with run(place, "put('f', b'new')") as journal:
        (state, *_) = states_after_power_cut(journal, len(journal.entries))
        state.build([place])
        assert sorted(path.name for path in place.iterdir()) == ["program"]
        assert (program.stat().st_mtime_ns, program.stat().st_mode) == (made.st_mtime_ns, made.st_mode)
        program.unlink()
        state.build([place])
        assert program.stat().st_mode == made.st_mode


def test_a_command_that_makes_the_watched_folder_is_told_what_to_do(place: Path) -> None:
    place.rmdir()
    with recording([place]) as journal:
        command = [sys.executable, "-I", "-S", "-c", f"import os; os.mkdir({str(place)!r})"]
        journal.watch(command, folder=place.parent, environment=os.environ, output=place.with_name("output"))
        (said,) = journal.not_modelled()
    assert "let --reset keep the folder" in said


def test_what_is_not_modelled_is_named(place: Path) -> None:
    program = """
    import mmap
    put('mapped', b'0000')
    file = os.open('mapped', os.O_RDWR)
    with mmap.mmap(file, 4) as whole:
        whole[0:4] = b'1234'
        whole.flush()
    reading, writing = os.pipe()
    os.write(writing, b'spliced')
    os.splice(reading, os.open('spliced', os.O_CREAT | os.O_WRONLY), 7)
    """
    with run(place, program) as journal:
        assert journal.not_modelled() == {
            "mmap of a writable file": (f"{place}/mapped",),
            "labkit could not read the bytes of a write (as with splice), so it cannot tell what a power cut leaves": (
                f"{place}/spliced",
            ),
        }
        assert journal.unexplained() == [f"{place}/mapped", f"{place}/spliced"]


# labkit's own files.

OWN = """
import sys
sys.path.insert(0, {folder!r})
from pathlib import Path
import {module} as durable
durable.make_folder(Path("made/deep"))
file = Path("made/deep/f")
durable.replace(file, b"old")
Path("told").touch()
durable.replace(file, b"newest")
"""


def survives(place: Path, module: str, folder: Path) -> None:
    """At every point the file is old or new as a whole, and from the return of `replace` on it is there."""
    name = "made/deep/f"
    program = OWN.format(folder=str(folder), module=module)
    with recorded([sys.executable, "-B", "-c", program], place) as journal:
        assert journal.watched.status == 0
        told = next(
            number
            for number, entry in enumerate(journal.entries)
            if entry.call.path.endswith("told") and entry.call.kind is CallKind.CREATE
        )
        for point in range(len(journal.entries) + 1):
            for state in states_after_power_cut(journal, point):
                content = files(state).get(name)
                assert content in ((None, b"old") if point <= told else (b"old", b"newest")), state
                assert content == b"old" or point != told, state
        last = len(journal.entries)
        assert all(files(state).get(name) == b"newest" for state in states_after_power_cut(journal, last))
        assert journal.unexplained() == []


def test_labkits_own_files_survive(place: Path) -> None:
    survives(place, "labkit.host.durable", ROOT)


FORGETFUL = {
    "nothing": "",
    "the file": "            os.fsync(file.fileno())\n",
    "the folder of the file": "        raise\n    sync_folder(path.parent)\n",
    "the folder of a new folder": "    path.mkdir(exist_ok=True)\n    sync_folder(path.parent)\n",
}


@pytest.mark.parametrize("what", FORGETFUL)
def test_one_sync_less_is_noticed(place: Path, tmp_path: Path, what: str) -> None:
    line = FORGETFUL[what]
    text = Path(durable.__file__).read_text()
    assert text.count(line) == 1 or what == "nothing"
    without = line
    for sync in ("sync_folder(path.parent)", "os.fsync(file.fileno())"):
        without = without.replace(sync, "pass")
    (tmp_path / "forgetful.py").write_text(text.replace(line, without) if line else text)
    expected = pytest.raises(AssertionError) if line else nullcontext()
    with expected:
        survives_with_path(place, tmp_path)


def survives_with_path(place: Path, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        survives(place, "forgetful", folder)


@pytest.mark.parametrize("mutant", ["a file's sync keeps its name", "a rename needs no sync"])
def test_a_model_that_keeps_too_much_is_noticed(place: Path, mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = disk_module.Disk._sync if mutant.startswith("a file") else disk_module.Disk._name

    def generous(disk: disk_module.Disk, *words: object) -> None:
        real(disk, *words)
        disk._reach_the_disk(None)

    monkeypatch.setattr(disk_module.Disk, real.__name__, generous)
    test = test_a_rename_without_a_sync
    if mutant.startswith("a file"):
        test = test_a_rename_of_a_file_that_was_synced_first
    with pytest.raises(AssertionError):
        test(place)


def test_a_rename_of_a_file_that_was_synced_first(place: Path) -> None:
    with run(place, "put('.f', b'new'); os.rename('.f', 'f'); sync('f')") as journal:
        assert left(journal) == {ALL_LOST: {}}


MAPS = """
import mmap, os
with open("db-shm", "w+b") as file:
    file.truncate(4096)
    with mmap.mmap(file.fileno(), 4096) as memory:
        memory[:4] = b"here"
with open("rows", "w") as file:
    file.write("1")
"""


@pytest.mark.parametrize(("name", "known"), [("db-shm", True), ("lock.mdb", True), ("db-map", False)])
def test_memory_that_a_database_shares_is_in_no_state(place: Path, name: str, known: bool) -> None:
    """Its bytes change unseen, and whoever opens the database first makes it anew; so nothing of it can be lost."""
    with run(place, MAPS.replace("db-shm", name)) as journal:
        assert (journal.unexplained() == []) == known
        assert (journal.not_modelled() == {}) == known
        files = left(journal)
        assert files
        assert any(name in state for state in files.values()) != known


def test_a_folder_that_the_command_makes_holds_nothing_before(tmp_path: Path) -> None:
    missing = tmp_path / "later"
    assert disk_module.Disk({missing: missing}).roots[missing].now == {}


@pytest.mark.parametrize("name", ["sync", "syncfs"])
def test_syncfs_reaches_one_of_several_file_systems(tmp_path: Path, name: str) -> None:
    """labkit does not know which one, so it knows nothing of the state that a power cut leaves."""
    other = Path("/proc/sys")
    assert other.stat().st_dev != tmp_path.stat().st_dev
    for folders in ((tmp_path,), (tmp_path, other)):
        disk = disk_module.Disk(dict.fromkeys(folders, tmp_path))
        disk.take(Call(1, 1, 1, CallKind.SYNC, name, str(tmp_path), "", 0, 0.0))
        assert bool(disk.not_modelled) is (name == "syncfs" and len(folders) > 1)
