"""What counts as an equal state of a pipeline's files, on real files."""

import os
from pathlib import Path

import pytest

from labkit.crashtest.blackbox import states
from labkit.crashtest.blackbox.effects import Namer
from labkit.crashtest.blackbox.states import Comparison, State, WatchedFiles


def looked(folder: Path, files: WatchedFiles | None = None) -> State:
    state = (files or watched(folder)).look(Namer([folder]))
    assert state is not None
    return state


def watched(folder: Path) -> WatchedFiles:
    """The files of a folder, of which nothing was there before the first run."""
    files = WatchedFiles([folder], folder / "apart")
    files.base = {}
    return files


CHANGES = {
    "contents": lambda file: file.write_text("2\n"),
    "a name": lambda file: file.rename(file.with_name("b")),
    "the mode": lambda file: file.chmod(0o700),
    "a second name": lambda file: file.with_name("b").hardlink_to(file),
    "a time that was set": lambda file: os.utime(file, (1, 1)),
    "no file": lambda file: file.unlink(),
    "a folder": lambda file: file.with_name("c").mkdir(),
    "a link": lambda file: file.with_name("c").symlink_to("a"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_state_differs_by_all_that_a_program_may_ask_of_a_file(tmp_path: Path, change: str) -> None:
    file, files = tmp_path / "a", watched(tmp_path)
    file.write_text("1\n")
    before = looked(tmp_path, files)
    assert before == looked(tmp_path, files) == looked(tmp_path)
    CHANGES[change](file)
    comparison = Comparison({})
    assert comparison.key(looked(tmp_path, files)) != comparison.key(before)
    assert looked(tmp_path, files) == looked(tmp_path)


def test_ids_in_names_caches_and_the_test_s_own_folder_are_not_compared(tmp_path: Path) -> None:
    seen = []
    for name in ("tmpabcdefgh", "tmp12345678"):
        (tmp_path / name).write_text("x")
        for folder in ("apart", "__pycache__"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).touch()
        seen.append(looked(tmp_path))
        (tmp_path / name).unlink()
    assert seen[0] == seen[1] != looked(tmp_path)


def test_a_state_is_kept_as_the_difference_from_the_files_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "input").touch()
    files = WatchedFiles([tmp_path], tmp_path / "apart")
    assert looked(tmp_path, files) == looked(tmp_path, files) == {}
    (tmp_path / "input").unlink()
    assert looked(tmp_path, files) == {"input": None}
    (tmp_path / "a").touch()
    assert set(looked(tmp_path, files)) == {"input", "a"}


@pytest.mark.parametrize(
    ("one", "other", "third", "is_equal"),
    [
        ("9 at 1764190439123", "9 at 1764190439999", "9 at 1764190440000", True),
        ("9 at 1764190439123", "9 at 1764190439999", "8 at 1764190440000", False),
        ("9 at noon", "9 at six", "8", True),  # nothing is known of it but whether it is empty
        ("9 at noon", "9 at six", "", False),
    ],
)
def test_contents_that_differ_by_chance_are_compared_as_far_as_they_agree(
    tmp_path: Path, one: str, other: str, third: str, is_equal: bool
) -> None:
    taken = []
    for text in (one, other, third):
        (tmp_path / "a").write_text(text)
        taken.append(looked(tmp_path))
    comparison = Comparison({})
    assert comparison.key(taken[0]) != comparison.key(taken[1])
    longest = {"write a #1": taken[0], "exit": taken[0]}
    assert comparison.learn([longest, {"write a #1": taken[1]}, {"write b #1": {}}]) == [taken[0], taken[0]]
    assert comparison.key(taken[0]) == comparison.key(taken[1])
    assert (comparison.key(taken[2]) == comparison.key(taken[0])) is is_equal
    assert comparison.blurred() == ([] if "1764" in one else ["a"])
    assert comparison.key(taken[2], left_out={"a"}) == frozenset()


def test_too_many_files_have_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "MOST_FILES", 3)
    for number in range(5):
        (tmp_path / f"f-{number}").touch()
    files = WatchedFiles([tmp_path], tmp_path / "apart")
    assert files.look(Namer([tmp_path])) is None
    assert files.too_many
    assert files.base is None
