"""The notebooks are in step with their sources, and the cells that claim something are really compared."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import build_notebooks
import nbformat
import pytest
from nbformat import NotebookNode

ROOT = Path(__file__).parent.parent.parent
TINY, VERDICT, CARD = (Path(__file__).with_name(name) for name in ("00_tiny.py", "01_verdict.py", "09b_card.py"))
SOURCES = build_notebooks.sources(ROOT)


@cache
def both(path: Path) -> tuple[list[NotebookNode], list[NotebookNode]]:
    """The cells of the learner's copy and of the checked copy of a source."""
    learner, checked = map(cells, build_notebooks.build(path))
    return learner, checked


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with one small source, as in the project."""
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    shutil.copy(TINY, tmp_path / "notebooks" / "src")
    return tmp_path


def source(tree: Path) -> Path:
    return tree / "notebooks" / "src" / TINY.name


def change(tree: Path, old: str, new: str) -> None:
    text = source(tree).read_text()
    assert old in text
    source(tree).write_text(text.replace(old, new))


def cells(text: str) -> list[NotebookNode]:
    return nbformat.reads(text, as_version=4).cells


def nbval(tree: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the checked copies of a folder as `make test` does, under the project's conftest."""
    shutil.copy(ROOT / "conftest.py", tree)
    (tree / "checked").mkdir(exist_ok=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tree / "checked")
    (tree / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT / 'tools'}\nmarkers =\n    notebook\n    slow\n")
    options = ["--nbval-lax", "--nbval-cell-timeout=60", "-p", "no:cacheprovider", *more]
    command = [sys.executable, "-m", "pytest", *options, tree / "checked"]
    environment = os.environ | variables
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", [TINY, VERDICT, *SOURCES], ids=lambda path: path.stem)
def test_both_copies_have_the_same_cells(path: Path) -> None:
    learner, checked = both(path)
    plain = [(cell.id, cell.cell_type, cell.source, cell.metadata) for cell in learner]
    assert plain == [
        (cell.id, cell.cell_type, cell.source, cell.metadata)
        for cell in checked
        if "checked" not in cell.metadata.get("tags", [])
    ]
    assert plain
    code = [cell for cell in learner if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


@pytest.mark.parametrize("path", [TINY, VERDICT, *SOURCES], ids=lambda path: path.stem)
def test_every_checked_cell_has_something_to_compare(path: Path) -> None:
    _, checked = both(path)
    claims = [cell for cell in checked if "nbval-check-output" in cell.metadata.get("tags", [])]
    assert claims
    for cell in claims:
        (output,) = cell.outputs
        assert cell.execution_count
        assert output.name == "stdout"
        assert output.text.strip()
        assert all(line == line.rstrip() for line in output.text.splitlines())


@pytest.mark.parametrize("path", [TINY, VERDICT, *SOURCES], ids=lambda path: path.stem)
def test_a_notebook_keeps_to_the_conventions(path: Path) -> None:
    learner, _ = both(path)
    assert learner[0].cell_type == "markdown"
    assert learner[0].source.startswith("# ")
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in learner) <= 1
    for cell in learner:
        if cell.cell_type == "code" and "exercise" not in cell.metadata.get("tags", []):
            lines = [line for line in cell.source.splitlines() if line.strip()]
            assert len(lines) <= 17, cell.source


def test_building_twice_gives_the_same_bytes_and_check_agrees(tree: Path) -> None:
    assert build_notebooks.main(["--root", str(tree)]) == 0
    copies = [tree / folder / "00_tiny.ipynb" for folder in ("notebooks", "checked")]
    first = [path.read_bytes() for path in copies]
    assert build_notebooks.main(["--root", str(tree)]) == 0
    assert [path.read_bytes() for path in copies] == first
    assert build_notebooks.main(["--root", str(tree), "--check"]) == 0


def test_no_notebook_at_all_is_fine(tmp_path: Path) -> None:
    assert build_notebooks.main(["--root", str(tmp_path), "--check"]) == 0


def test_check_sees_a_change_on_either_side_and_a_copy_without_a_source(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = ["--root", str(tree), "--check"]
    assert build_notebooks.main(check) == 1
    build_notebooks.main(["--root", str(tree)])
    learner = tree / "notebooks" / "00_tiny.ipynb"
    learner.write_text(learner.read_text().replace("Predict", "Guess"))
    assert build_notebooks.main(check) == 1
    build_notebooks.main(["--root", str(tree)])
    change(tree, "Predict first", "Guess first")
    assert build_notebooks.main(check) == 1
    build_notebooks.main(["--root", str(tree)])
    shutil.copy(learner, tree / "notebooks" / "99_stray.ipynb")
    capsys.readouterr()
    assert build_notebooks.main(check) == 1
    assert "99_stray.ipynb: it has no source" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('# %% [raw] tags=["expected"]\n# hello 4\n# world 2\n', "", "a raw cell tagged expected must follow it"),
        ('tags=["expected"]', "", "a raw cell tagged expected must follow it"),
        ("# hello 4\n# world 2\n", "", "must be a raw cell that is not empty"),
        ('# %% [raw] tags=["expected"]', '# %% tags=["expected"]', "must be a raw cell"),
        ("nbval-check-output", "nbval-check-outputs", "unknown tag nbval-check-outputs"),
        ('# %% tags=["nbval-check-output"]', "# %%", "must follow a cell tagged nbval-check-output"),
        ("for word in", "# NBVAL_IGNORE_OUTPUT\nfor word in", "use a tag"),
    ],
)
def test_a_source_that_would_compare_nothing_is_refused(
    tree: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, told: str
) -> None:
    change(tree, old, new)
    assert build_notebooks.main(["--root", str(tree)]) == 1
    said = capsys.readouterr().err
    assert "00_tiny.py, cell" in said
    assert told in said


@pytest.mark.notebook
def test_nbval_compares_and_one_wrong_line_turns_it_red(tree: Path) -> None:
    change(tree, "# hello 4", "# hello 3")
    build_notebooks.main(["--root", str(tree)])
    red = nbval(tree)
    assert red.returncode == 1
    assert "1 failed, 2 passed" in red.stdout


@pytest.mark.slow
@pytest.mark.notebook
def test_a_killed_kernel_leaves_no_temporary_folder(tree: Path) -> None:
    change(tree, "assert len(words)", "import tempfile\n\nplace = tempfile.TemporaryDirectory()\nassert len(words)")
    build_notebooks.main(["--root", str(tree)])
    (tree / "t").mkdir()
    assert nbval(tree, TMPDIR=str(tree / "t")).returncode == 0
    assert list((tree / "t").iterdir()) == []


@pytest.mark.slow
def test_a_notebook_that_says_so_is_slow(tree: Path) -> None:
    header = "# ---\n# jupyter:\n#   labkit:\n#     slow: true\n# ---\n\n"
    source(tree).write_text(header + source(tree).read_text())
    build_notebooks.main(["--root", str(tree)])
    chosen = nbval(tree, "--collect-only", "-m", "not slow")
    assert "3 deselected" in chosen.stdout


@pytest.mark.notebook
def test_accept_takes_over_what_is_printed_and_touches_nothing_else(tree: Path) -> None:
    change(tree, "# hello 4\n# world 2\n", "# something else\n")
    assert build_notebooks.main(["--root", str(tree), "--accept", "00_tiny"]) == 0
    assert source(tree).read_text() == TINY.read_text()


@pytest.fixture
def carded(tree: Path) -> Path:
    """A folder with a source whose number has a letter, and the one that it needs."""
    for path in (VERDICT, CARD):
        shutil.copy(path, tree / "notebooks" / "src")
    source(tree).unlink()
    return tree / "notebooks" / "src" / CARD.name


def test_a_number_may_have_a_letter_and_comes_after_the_same_without(tree: Path, carded: Path) -> None:
    shutil.copy(VERDICT, carded.with_name("09_kafka.py"))
    shutil.copy(VERDICT, carded.with_name("notes.py"))
    assert [path.stem for path in build_notebooks.sources(tree)] == ["01_verdict", "09_kafka", "09b_card"]
    assert list(build_notebooks.exercises(carded)) == ["09b-timeout"]


def test_an_assertion_is_in_the_checked_copy_alone(carded: Path) -> None:
    learner, checked = build_notebooks.build(carded)
    assert "assert count" not in learner + build_notebooks.instructor(carded)
    assert "assert count == 3" in checked
    ids = [cell.id for cell in cells(checked)]
    assert len(set(ids)) == len(ids)


def test_the_head_says_the_minutes_and_what_comes_before(carded: Path) -> None:
    said = cells(build_notebooks.build(carded)[0])[0].source.splitlines()[-1]
    assert said == "*About 1 minute, and 25 for the exercises. Read [01_verdict](01_verdict.ipynb) before.*"
    without = carded.read_text().replace("[01_verdict]", "[]")
    carded.write_text(without)
    said = cells(build_notebooks.build(carded)[0])[0].source
    assert said.endswith("*About 1 minute, and 25 for the exercises. It needs no other notebook.*")


@pytest.mark.parametrize("name", ["09b_card", "09_kafka", "00_none"])
def test_what_does_not_come_before_cannot_be_needed(
    tree: Path, carded: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    carded.write_text(carded.read_text().replace("[01_verdict]", f"[{name}]"))
    assert build_notebooks.main(["--root", str(tree)]) == 1
    assert f"it needs {name}, which is not an earlier notebook" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.notebook
def test_nbval_compares_the_text_of_a_card(tree: Path, carded: Path) -> None:
    carded.with_name(VERDICT.name).write_text(TINY.read_text())
    build_notebooks.main(["--root", str(tree)])
    copy = tree / "checked" / "09b_card.ipynb"
    right = copy.read_text()
    for old, new in (
        ("rows: 3", "rows: 4"),
        ("printed before\\n", "before\\n"),
        ("assert count == 3", "assert count == 4"),
    ):
        at = right.rindex(old)
        copy.write_text(right[:at] + new + right[at + len(old) :])
        red = nbval(tree, "-k", "09b_card")
        assert red.returncode == 1, red.stdout
        assert "1 failed, 5 passed" in red.stdout
    copy.write_text(right)
    green = nbval(tree, "-k", "09b_card")
    assert (green.returncode, "6 passed" in green.stdout) == (0, True), green.stdout


@pytest.mark.notebook
def test_accept_takes_over_the_text_of_a_card(tree: Path, carded: Path) -> None:
    right = carded.read_text()
    carded.write_text(right.replace("# printed before\n# rows: 3\n", "# something else\n"))
    assert build_notebooks.main(["--root", str(tree), "--accept", "09b_card"]) == 0
    assert carded.read_text() == right
