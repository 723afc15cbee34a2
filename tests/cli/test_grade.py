"""`labkit grade` and `labkit release` at the command line: bad input is one sentence and exit code 64."""

import json
from pathlib import Path

import pytest
import submitted
from command import apart, refusal

from labkit.core.errors import InvalidInput
from labkit.grading.grade import grade
from labkit.grading.order import Order


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--deadline", "tomorrow"], "not a date and time"),
        pytest.param(
            ["--isolation", "strong"], "choose one of best, namespaces, user-namespaces, plain", marks=pytest.mark.slow
        ),
        pytest.param(["--isolation", "plain"], "add --trust", marks=pytest.mark.slow),
        pytest.param(["--workers", "-1"], "choose 0 to 256", marks=pytest.mark.slow),
        pytest.param(["--cell-seconds", "0"], "choose 0.1 to 86,400", marks=pytest.mark.slow),
        pytest.param(["--course", "nowhere.py"], "there is no such file", marks=pytest.mark.slow),
        pytest.param(["--roster", "nowhere.csv"], "the roster cannot be read", marks=pytest.mark.slow),
        (["--only", "Eve"], "--only Eve: no student"),
    ],
)
def test_bad_options(options: list[str], says: str, tmp_path: Path) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    course = [] if "--course" in options else ["--course", submitted.COURSE]
    assert says in refusal("grade", tmp_path / "in", "--out", tmp_path / "out", *course, *options)
    assert not (tmp_path / "out" / "records").exists() or not list((tmp_path / "out" / "records").iterdir())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["nix"], "nix: there is no such file or folder"),
        (["ada", "nix"], "nix: there is no such file or folder"),
        (["class.csv", "hand.py"], "class.csv, hand.py: found no submission; name folders"),
        (["empty"], "empty: found no submission"),
    ],
)
def test_what_holds_no_submission_is_refused_before_anything_is_written(
    given: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    submitted.hand_in(tmp_path, "ada", submitted.answers())
    for name in ("class.csv", "hand.py"):
        (tmp_path / name).write_text("id,name\n")
    with pytest.raises(InvalidInput, match=says):
        grade(Order([*map(Path, given)], Path("out"), submitted.COURSE), lambda *_: None)
    assert not Path("out").exists()


def test_a_batch_at_the_command_line(tmp_path: Path) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    submitted.hand_in(tmp_path / "in", "bob", submitted.answers(dedup=submitted.WRONG["01-dedup"]))
    arguments = ("grade", f"{tmp_path}/in", "--out", f"{tmp_path}/out", "--course", str(submitted.COURSE))
    code, out, words = apart(*arguments)
    assert code == 0
    assert out.startswith("2 submissions graded")
    assert "Isolation: " in out
    assert "2 of 2" in words
    assert "2 students have texts" in out
    page = (tmp_path / "out" / "feedback" / "bob--feedback.html").read_text()
    assert "seen gives another value." in page
    assert "4 of 6 points" in page or "4 of 8 points" in page
    summary = (tmp_path / "out" / "summary.html").read_text()
    assert "1 × seen gives another value." in summary
    again = apart(*arguments)[1]
    assert again.startswith("0 submissions graded; 2 had not changed")
    assert "late" not in again
    assert "\n2 of 2 students are late.\n" in apart(*arguments, "--deadline", "2001-01-01T00:00")[1]
    assert not any("late" in name for name in json.loads(apart(*arguments, "--json")[1]))
