"""The words and files at the end of a command, where something else goes wrong."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from command import labkit, refusal

from labkit import cli
from labkit.cli import GO_ON, Stopped, crashtest


@pytest.mark.parametrize("place", ["missing/junit.xml", "folder", "file/junit.xml"])
def test_a_junit_file_that_cannot_be_written_is_refused_before_the_test(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "sink.py").write_text("raise SystemExit('the test began')\n")
    assert refusal("crashtest", "sink.py:write", "--junit", place, cwd=tmp_path).startswith(f"--junit {place}: ")


class Finished:
    """A report whose folder for JUnit's file is gone by the end of the test, or whose reader has left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *_: object) -> SimpleNamespace:
        self.folder.rmdir()
        return SimpleNamespace(text=lambda: "the report", junit=lambda *_: "<xml/>", code=lambda *_: 0)


def test_a_finished_report_is_printed_and_kept_whatever_becomes_of_the_junit_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ci").mkdir()
    kept: list[Path] = []
    monkeypatch.setattr(crashtest, "_test_sink", Finished(tmp_path / "ci"))
    monkeypatch.setattr("labkit.crashtest.kept.keep", lambda _, out: kept.append(out))
    words = ("crashtest", "sink.py:write", "--junit", "ci/junit.xml", "--out", "out")
    code, printed, _ = labkit(*words, cwd=tmp_path)
    assert code != 0
    assert printed == "the report\n"
    assert kept == [Path("out")]


def test_a_junit_file_may_lie_in_the_folder_that_the_test_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labkit.crashtest.kept.keep", lambda _, out: None)
    monkeypatch.setattr(
        crashtest, "_test_sink", lambda _said, _subject, out, _given: out.mkdir() or Finished(tmp_path / "gone")()
    )
    (tmp_path / "gone").mkdir()
    code, *_ = labkit("crashtest", "sink.py:write", "--junit", "out/junit.xml", "--out", "out", cwd=tmp_path)
    assert code == 0
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
