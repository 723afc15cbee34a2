"""The notebooks as pages: everything inside, nothing asked of the network, links that lead to the other pages."""

import html
import os
import re
import shutil
from pathlib import Path

import build_site
import pytest

from labkit.teach.questions import notes
from labkit.teach.questions.question import find

NOTEBOOKS = Path(__file__).parent / "notebooks"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with two small sources, as in the project."""
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    for name in ("00_tiny.py", "01_verdict.py"):
        shutil.copy(NOTEBOOKS / name, tmp_path / "notebooks" / "src")
    return tmp_path


def change(tree: Path, old: str, new: str) -> None:
    path = tree / "notebooks" / "src" / "00_tiny.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def loaded(page: str) -> list[str]:
    """Every address that a browser would ask for by itself."""
    found = re.findall(r"<(?:script|img|link|iframe)[^>]*(?:src|href)=\"([^\"]+)\"|@import|url\((?!data:|#)", page)
    return [address for address in found if not address.startswith("data:")]


@pytest.mark.notebook
def test_the_pages_are_run_and_linked_and_load_nothing(tree: Path, capsys: pytest.CaptureFixture[str]):
    change(tree, "Predict first:", "Predict first, then see [the verdict](01_verdict.ipynb):")
    change(tree, "assert len(words) == 3", 'from labkit.view.show import show\nshow("pipeline.jump_back")')
    assert build_site.main(["--root", str(tree), "--not-live", "--stored", "01_verdict"]) == 0
    site = tree / "build" / "site"
    assert sorted(path.name for path in site.iterdir()) == [
        "00_tiny.html",
        "01_verdict.html",
        "index.html",
        "simulators",
    ]
    page = (site / "00_tiny.html").read_text()
    assert 'href="01_verdict.html"' in page
    assert "mountAll(" in page
    assert "hello 4" in page
    assert build_site.STORED not in page
    assert build_site.STORED in (site / "01_verdict.html").read_text()
    assert "What does a replay do to a count?" in (site / "index.html").read_text()
    for path in site.glob("*.html"):
        assert loaded(path.read_text()) == [], path
    assert "running 00_tiny" in capsys.readouterr().out


@pytest.mark.notebook
def test_a_notebook_that_fails_is_shown_as_its_source_claims(tree: Path, capsys: pytest.CaptureFixture[str]):
    change(tree, "assert len(words) == 3", "assert len(words) == 4, 'four words'")
    assert build_site.main(["--root", str(tree), "--not-live", "--stored", "01_verdict"]) == 1
    assert "00_tiny: a cell failed: AssertionError: four words" in capsys.readouterr().err
    assert "hello 4" in (tree / "build" / "site" / "00_tiny.html").read_text()


def test_an_unknown_name_gets_a_sentence(tree: Path, capsys: pytest.CaptureFixture[str]):
    assert build_site.main(["--root", str(tree), "--stored", "09_none"]) == 64
    assert "--stored 09_none: unknown; choose from 00_tiny, 01_verdict." in capsys.readouterr().err


def test_a_stored_page_asks_before_it_answers(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    # The builder has taken the course in the folder in which the site is built.
    monkeypatch.chdir(tmp_path_factory.mktemp("working"))
    monkeypatch.delenv(notes.UNATTENDED, raising=False)
    [three] = find("00-rows").parse(["3"])
    notes.keep(find("00-rows"), (three,), "the builder's own reason")
    assert notes.of(find("00-rows"))
    change(
        tree, "assert len(words) == 3", 'from labkit import lab\nlab.ask("00-rows")\n\n# %%\nlab.answer("00-rows", 6)'
    )
    stored = ["--stored", "00_tiny", "--stored", "01_verdict"]
    assert build_site.main(["--root", str(tree), "--not-live", *stored]) == 0
    page = (tree / "build" / "site" / "00_tiny.html").read_text()
    asked, answered = page.index("mount("), page.index('data-lk-answer="00-rows"')
    assert asked < answered
    assert "It was 6." in page[answered:]
    assert "data-said=" not in page
    assert "the builder's own reason" not in html.unescape(page)
    assert notes.UNATTENDED not in os.environ
