"""The words and files at the end of a command, where something else goes wrong."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import labkit, refusal

from labkit import cli
from labkit.cli import GO_ON, Stopped


@pytest.mark.parametrize("place", ["missing/junit.xml", "folder", "file/junit.xml"])
def test_a_junit_file_that_cannot_be_written_is_refused_before_the_test(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "sink.py").write_text("raise SystemExit('the test began')\n")
    assert refusal("crashtest", "sink.py:write", "--junit", place, cwd=tmp_path).startswith(f"--junit {place}: ")


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Has every test end at once, after which the folder `gone` is gone; gives the folders that were kept."""
    (tmp_path / "gone").mkdir()
    (tmp_path / "sink.py").write_text("def write(df, batch_id): ...\ndef read(): ...\n")
    kept: list[Path] = []

    def everything(out: Path) -> SimpleNamespace:
        out.mkdir()
        (tmp_path / "gone").rmdir()
        return SimpleNamespace(text=lambda: "the report", junit=lambda *_: "<xml/>", code=lambda *_: 0)

    def campaign_of(_wanted: object, out: Path, _tell: object, **_: bool) -> AbstractContextManager[SimpleNamespace]:
        return nullcontext(SimpleNamespace(everything=lambda: everything(out)))

    monkeypatch.setattr("labkit.crashtest.campaigns.campaign_of", campaign_of)
    monkeypatch.setattr("labkit.crashtest.page.keep", lambda _, out: kept.append(out))
    return kept


def test_a_finished_report_is_printed_and_kept_whatever_becomes_of_the_junit_file(
    tmp_path: Path, tested: list[Path]
) -> None:
    words = ("crashtest", "sink.py:write", "--junit", "gone/junit.xml", "--out", "out")
    code, printed, _ = labkit(*words, cwd=tmp_path)
    assert code != 0
    assert printed == "the report\n"
    assert tested == [Path("out")]


def test_a_junit_file_may_lie_in_the_folder_that_the_test_makes(tmp_path: Path, tested: list[Path]) -> None:
    words = ("crashtest", "sink.py:write", "--junit", "out/junit.xml", "--out", "out")
    code, printed, _ = labkit(*words, cwd=tmp_path)
    assert (code, printed, tested) == (0, "the report\n", [Path("out")])
    assert (tmp_path / "out" / "junit.xml").read_text() == "<xml/>"


@pytest.mark.parametrize("words", [["run"], ["--debug", "run"], ["run", "--debug"]])
def test_a_stopped_verb_says_how_it_goes_on(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(_: object) -> int:
        raise Stopped(15)

    monkeypatch.setattr(cli, "_run", stopped)
    assert cli.execute(words) == 128 + 15
    assert GO_ON["run"] in capsys.readouterr().err
