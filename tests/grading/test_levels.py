"""Every level of isolation that this machine offers gives the reference full marks, and names those that it lacks."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import submitted
from batches import graded, record_of

from labkit.core.errors import InvalidInput
from labkit.grading.sandbox import levels, root_layout
from labkit.grading.sandbox.inside.confine import layers
from labkit.grading.sandbox.inside.jobs import Level, Limits
from labkit.grading.sandbox.sandbox import RunEnd, Sandbox
from labkit.teach.exercises.registry import EXERCISES


def offered(folder: Path) -> dict[Level, str | None]:
    lab = folder / "lab"
    root_layout.copy_lab(lab, [])
    here = levels.place_of(folder, root_layout.shown(lab), (), 0)
    return {level: levels.missing(level, here, lab) for level in Level}


OFFERED = """
import sys
from pathlib import Path
from labkit.grading.sandbox import levels, root_layout
from labkit.grading.sandbox.inside.jobs import Level
folder = Path(sys.argv[1])
here = levels.place_of(folder, root_layout.shown(folder / "lab"), (), 0)
print(levels.missing(Level.NAMESPACES, here, folder / "lab"))
"""


@pytest.mark.slow  # at the best level, the good students of test_hostile.py get full marks
@pytest.mark.parametrize("level", [Level.USER_NAMESPACES, Level.PLAIN])
def test_the_reference_gets_full_marks(level: Level, tmp_path: Path) -> None:
    if why := offered(tmp_path)[level]:
        pytest.skip(f"{level}: {why}")
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    graded(tmp_path, isolation=level, trust=True)
    record = record_of(tmp_path / "out", "ada")
    assert record.isolation.level == level
    assert {item.name: item.points for item in record.items} == dict.fromkeys(submitted.JUDGED, 2) | {"01-why": None}
    assert record.executed is not None
    assert "double" in (tmp_path / "out" / "executed" / record.executed).read_text()


def test_a_level_that_is_missing_is_named_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "missing", lambda level, *_: None if level is Level.PLAIN else "It has none.")
    here = levels.place_of(tmp_path, (), (), 0)
    with pytest.raises(InvalidInput, match=r"namespaces: It has none.*--trust"):
        levels.choose("best", here, tmp_path, trust=False)
    assert levels.choose("best", here, tmp_path, trust=True) == (
        Level.PLAIN,
        {"namespaces": "It has none.", "user-namespaces": "It has none."},
    )


def test_python_may_be_a_link_to_a_link_in_another_folder(tmp_path: Path) -> None:
    if why := offered(tmp_path)[Level.NAMESPACES]:
        pytest.skip(str(why))
    python = Path(tempfile.mkdtemp(prefix="labkit-venv-")) / "bin" / "python"  # other parents than those that are shown
    elsewhere = Path(tempfile.mkdtemp(prefix="labkit-bin-")) / "python3"
    try:
        python.parent.mkdir()
        python.symlink_to(elsewhere)
        elsewhere.symlink_to(Path(sys.executable).resolve())
        (python.parent.parent / "lib").symlink_to(Path(sys.prefix, "lib"))
        shutil.copy(Path(sys.prefix, "pyvenv.cfg"), python.parent.parent)
        python.parent.parent.chmod(0o755)  # the sandbox's user has to read it
        done = subprocess.run([python, "-P", "-c", OFFERED, tmp_path], capture_output=True, text=True, check=True)
        assert done.stdout == "None\n"
    finally:
        shutil.rmtree(python.parent.parent)
        shutil.rmtree(elsewhere.parent)


@pytest.mark.slow
def test_a_sandbox_that_is_full_of_processes_takes_none_from_another_batch(tmp_path: Path) -> None:
    """Two batches at once on one machine give their sandboxes the same user id, and the kernel counts by user."""
    level = Level.NAMESPACES
    if why := offered(tmp_path)[level]:
        pytest.skip(f"{level}: {why}")
    lab, deadline = tmp_path / "lab", time.monotonic() + 120
    crowd = (
        "import subprocess\nkept = []\ntry:\n    while True: kept.append(subprocess.Popen(['sleep', '100']))\n"
        "except OSError: pass"
    )

    @contextmanager
    def at_its_second_cell(folder: str, first: str) -> Iterator[RunEnd | None]:
        (tmp_path / folder).mkdir()
        here = levels.place_of(tmp_path / folder, root_layout.shown(lab), (), 0)
        notebook = submitted.notebook(first, "import time; time.sleep(100)")
        with closing(Sandbox(level, here, lab, Limits())) as sandbox, sandbox.run(notebook, [], deadline) as running:
            yield running.until_cell(1)

    with at_its_second_cell("one", crowd) as crowded, at_its_second_cell("two", "import threading") as other:
        assert crowded is None
        assert other is None


def test_plain_needs_trust(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="add --trust"):
        levels.choose("plain", levels.place_of(tmp_path, (), (), 0), tmp_path, trust=False)


def printed(code: str, lab: Path) -> str:
    """What code prints that imports the copy of the lab in this folder."""
    environment = {**os.environ, "PYTHONPATH": str(lab)}
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, check=True, env=environment, capture_output=True, text=True).stdout


def test_what_is_withheld_can_be_imported_and_not_used(tmp_path: Path) -> None:
    root_layout.copy_lab(tmp_path, ["labkit.sim.models.two_phase_commit.model", "labkit.sinks.two_phase"])
    code = (
        "from labkit import lab; from labkit.sim.models.two_phase_commit import model as m\n"
        "try: m.TwoPhaseCommit(2)\nexcept ImportError as e: print(e)"
    )
    assert "withheld while exercises are graded" in printed(code, tmp_path)
    assert not (tmp_path / "labkit" / "grading" / "marking.py").exists()
    assert not (tmp_path / "labkit" / "teach" / "exercises" / "registry.py").exists()


def test_where_answers_are_graded_no_question_is_asked(tmp_path: Path) -> None:
    """What questions expect would answer exercises; a cell that asks does nothing there."""
    root_layout.copy_lab(tmp_path, [])
    tables = [path for path in tmp_path.rglob("*.toml") if "sim" not in path.parts]  # scenarios are shown to all
    assert sorted(tables) == [
        tmp_path / "labkit" / "crashtest" / "blackbox" / "repairs.toml",
        tmp_path / "labkit" / "crashtest" / "blackbox" / "writes.toml",
        tmp_path / "labkit" / "runs" / "expected.toml",
        tmp_path / "labkit" / "teach" / "glossary.toml",
    ]
    asking = 'from labkit import lab\nprint(lab.ask("00-rows"), lab.answer("00-rows", 6))'
    assert printed(asking, tmp_path) == "None None\n"


def test_the_lab_can_be_imported_without_all_that_is_withheld(tmp_path: Path) -> None:
    """Tables of rules and registries are built when a module is imported, also from what is not there."""
    withheld = sorted({m for each in EXERCISES.values() for m in each.withheld})
    assert len(withheld) > 5
    root_layout.copy_lab(tmp_path, withheld)
    answering = [
        'lab.explore("kafka_log", timeout=4)',  # 09b-timeout
        'lab.seen_over_time({}, "hello")',  # 06-jump
        'lab.explore("two_phase_commit", participants=2)',  # 05-recovery, 05-atomic
        'lab.explore("snapshot")',  # 03-cut
        'lab.simulate("sink.mid_commit", sink="wal")',  # 06-wal
    ]
    tried = "\n".join(
        f"try:\n    {call}\nexcept ImportError as error: print(error)\nelse: print('answers')" for call in answering
    )
    said = printed(f"from labkit import lab\n{tried}", tmp_path).splitlines()
    assert len(said) == len(answering)
    assert all("is withheld while exercises are graded" in line for line in said), said


@pytest.mark.slow
def test_a_listening_service_of_this_machine_is_out_of_reach(tmp_path: Path) -> None:
    """What the hostile set asks in general, with a server that surely listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        reached = threading.Event()

        def accept() -> None:
            try:
                server.accept()
                reached.set()
            except OSError:
                pass

        threading.Thread(target=accept, daemon=True).start()
        ask = f"import socket\nsocket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 1)\n"
        cells = submitted.answers(double=f"{ask}def double(number):\n    return 2 * number")
        submitted.hand_in(tmp_path / "in", "eve", cells)
        graded(tmp_path)
        assert not reached.is_set()
    record = record_of(tmp_path / "out", "eve")
    assert [item.status for item in record.items] == ["failed", "right", "right", "by hand"]
    assert "is not defined: its cell failed" in record.items[0].reason


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder outside of the checkout, whose own folders nobody may see."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_of_what_is_private_only_what_would_be_seen_is_masked_and_nothing_twice(outside: Path) -> None:
    for name in ("shown/tests/deep", "elsewhere"):
        (outside / name).mkdir(parents=True)
    private = [outside / "shown" / "tests", outside / "shown" / "tests" / "deep", outside / "elsewhere"]
    visible = [str(outside / "shown")]
    assert root_layout.masked(visible, private) == (str(outside / "shown" / "tests"),)


@pytest.mark.slow
def test_a_checkout_that_is_shown_by_chance_shows_no_grader(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(root_layout.PACKAGE.parent)
    monkeypatch.setattr(root_layout, "_SYSTEM", (root, *root_layout._SYSTEM))
    # Built things are left out: beside other tests there are too many of them for the time that a cell has.
    looks = (
        "import os\nseen_there = []\n"
        f"for one in os.walk({root!r}):\n"
        "    one[1][:] = [name for name in one[1] if name not in ('.venv', '.git', 'build', 'node_modules')]\n"
        "    if 'marking.py' in one[2] or 'sample' in one[1]: seen_there.append(one[0])"
    )
    cells = submitted.answers(double=f"{looks}\ndef double(number):\n    return 2 * number if seen_there else None")
    submitted.hand_in(outside / "in", "eve", cells)
    graded(outside)
    record = record_of(outside / "out", "eve")
    assert [item.status for item in record.items] == ["wrong", "right", "right", "by hand"]


def test_what_python_needs_is_shown_again_within_what_nobody_may_see() -> None:
    shown = ["/usr", "/usr/src/lab/.venv", "/usr/lib/python3", "/home/me/.venv"]
    masked = [
        *("/usr/src/lab", "/usr/src/lab/tests", "/home/me"),
        *("/usr/src/lab/.venv/lib/labkit", "/usr/src/lab/.venv/lib/labkit/deep"),
    ]
    assert layers(shown, masked) == {
        "/home/me/.venv": True,
        "/usr": True,
        "/usr/src/lab": False,
        "/usr/src/lab/.venv": True,
        "/usr/src/lab/.venv/lib/labkit": False,
    }
    assert layers(["/a"], ["/a"]) == {}


@pytest.mark.slow
def test_a_checkout_that_is_shown_shows_neither_its_history_nor_its_notes(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where images have their working folder, /usr/src/app: Python itself may lie in it, and must be there."""
    checkout = outside / "app"
    secrets = [".git/HEAD", "notes/solved.ipynb", "dist/lab.whl", "tools/build.py"]
    for name in ("labkit", *(str(Path(each).parent) for each in secrets)):
        (checkout / name).mkdir(parents=True)
    for name in ("pyproject.toml", *secrets):
        (checkout / name).write_text("a solution")
    kept = outside / "app" / "kept"
    kept.mkdir()
    (kept / "python").write_text("needed")
    monkeypatch.setattr(root_layout, "PACKAGE", checkout / "labkit")
    shown = [*root_layout.shown(kept), str(outside)]
    masked = root_layout.masked(shown, [])
    assert str(checkout) in masked
    monkeypatch.undo()
    lab = outside / "lab"
    root_layout.copy_lab(lab, [])
    here = levels.place_of(outside, [*shown, *root_layout.shown(lab)], masked, 0)
    level, _ = levels.choose("best", here, lab, trust=False)
    looks = (
        f"import os\nfound = [os.path.join(a, c) for a, _, b in os.walk({str(outside / 'app')!r}) for c in b]\n"
        f"print(found)\nopen({str(kept / 'python')!r}).read()\n"
        f"try: os.mkdir({str(checkout / 'new')!r})\nexcept OSError: print('read only')"
    )
    with (
        closing(Sandbox(level, here, lab, Limits())) as sandbox,
        sandbox.run(submitted.notebook(looks, "1"), [], time.monotonic() + 60) as run,
    ):
        while not (text := run.executed(60)) and run.ended() is None:
            pass
    assert text is not None
    assert str(kept / "python") in text
    assert "read only" in text
    assert "solved.ipynb" not in text
    assert "HEAD" not in text
