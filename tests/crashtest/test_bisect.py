"""Which versions a bisection tries, what it says about them, and one bisection of local wheels with real kills."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from command import labkit, refusal

from labkit.core.errors import InvalidInput
from labkit.crashtest.bisection import AS_EXPECTED, WEAKER, Answer, Range, Trial, chosen, next_to_try, trial_of
from labkit.host import releases as index
from labkit.host.environments import uv_variables

COMMANDS = ["--command", "{python} job.py", "--read-command", "cat out", "--reset", "rm -f out"]


def tried(sides: str) -> list[int]:
    """The positions that a bisection tries, in order, if each version has the side of its letter; `?` is no side."""
    order: list[int] = []
    while (position := next_to_try(len(sides), {each: _side(sides[each]) for each in order})) is not None:
        assert position not in order
        order.append(position)
    return order


def _side(letter: str) -> str | None:
    return None if letter == "?" else letter


@pytest.mark.parametrize(
    ("sides", "order"),
    [
        ("a", [0]),
        ("aa", [0, 1]),
        ("aaaaa", [0, 4]),
        ("aaaab", [0, 4, 2, 3]),
        ("abbbbbbb", [0, 7, 3, 1]),
        ("?aab", [0, 3, 1, 2]),
        ("ab?", [0, 2, 1]),
        ("aa?bb", [0, 4, 2, 1, 3]),
        ("????", [0, 3, 1, 2]),
        ("accb", [0, 3, 1]),
    ],
)
def test_a_bisection_tries_both_ends_and_then_the_middle_of_a_change(sides: str, order: list[int]) -> None:
    assert tried(sides) == order


@pytest.mark.parametrize("count", [2, 3, 10, 100])
def test_a_bisection_finds_the_change_wherever_it_is(count: int) -> None:
    for first_b in range(1, count):
        sides = "a" * first_b + "b" * (count - first_b)
        order = tried(sides)
        assert {first_b - 1, first_b} <= set(order)
        assert len(order) <= 2 + (count - 1).bit_length()


def test_versions_are_ordered_as_versions_and_what_is_left_out_is_named() -> None:
    available = ["1.10.0", "1.9.0", "1.9.0.post1", "2.0rc1", "1.2", "no version", "1.11.0", "3.0"]
    found = chosen(available, "1.3..2.0", frozenset({"1.11"}))
    assert found == Range(("1.9.0", "1.9.0.post1", "1.10.0"), ("2.0rc1",), ("1.11.0",))
    assert chosen(available, "").versions[-1] == "3.0"
    assert chosen(available, "..1.9").versions == ("1.2", "1.9.0")


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("1.0", "--versions 1.0: this is not a range"),
        ("2.0..1.0", "swap the two"),
        ("a..b", "a is not a version number"),
        ("7..8", "no version is in this range (the package has 1.0 to 2.0rc1)"),
        ("1.5..2.0", "those in the range are pre-releases or yanked"),
    ],
)
def test_a_range_without_a_version_is_refused(wanted: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        chosen(["1.0", "2.0rc1"], wanted)
    assert sentence in str(refused.value)


def report(strength: str, at_best: str, stuck: str = "holds") -> dict[str, Any]:
    weakest = {"id": "rename a #1", "because": "lost"} if at_best != "exactly-once" else None
    return {
        "guarantee": f"{strength} {at_best}",
        "claim": {"strength": strength, "at_best": at_best},
        "axes": {"stuck": stuck},
        "faults": {"eio": {"found": None, "claim": "unknown"}, "fsync": {"found": 2, "claim": "withstood (2 of 2)"}},
        "weakest": weakest,
        "why": None,
        "command": "labkit crashtest",
    }


def trial(version: str, strength: str, at_best: str, *packages: str) -> Trial:
    found = trial_of(version, "2026-01-02", report(strength, at_best), 0)
    return Trial(**{**vars(found), "packages": packages})


def test_an_unknown_guarantee_is_no_side_and_a_sample_keeps_its_word() -> None:
    assert trial_of("1", "", report("unknown", "exactly-once"), 2).side is None
    sampled, whole = (trial_of("1", "", report(each, "exactly-once"), 0) for each in ("sampled", "complete"))
    assert sampled.side == whole.side
    assert (sampled.sampled, whole.sampled) == (True, False)
    assert sampled.words == "sampled exactly-once; fsync: withstood (2 of 2)"
    assert trial_of("1", "", report("complete", "exactly-once", stuck="violated"), 0).side != whole.side


def test_an_expected_guarantee_makes_the_sides() -> None:
    sides = [trial_of("1", "", report("sampled", "exactly-once"), code, "exactly-once").side for code in (0, 1, 2)]
    assert sides == [AS_EXPECTED, WEAKER, None]


def answer(count: int, **trials: Trial) -> Answer:
    versions = tuple(f"{each}.0" for each in range(count))
    return Answer("dlt", Range(versions, ("9rc1",)), {int(name[1:]): each for name, each in trials.items()})


def test_a_change_between_neighbours_names_other_packages_that_changed() -> None:
    before, after = (
        trial("0.0", "refuted", "at-least-once", "dlt==0.0", "a==1"),
        trial("1.0", "sampled", "exactly-once", "DLT==1.0", "a==2", "b==1"),
    )
    found = answer(2, _0=before, _1=after)
    assert found.is_definite
    assert found.code() == 0
    first = found.sentences()[0]
    assert "between dlt 0.0 and 1.0 (2026-01-02): from refuted at-least-once; " in first
    assert "to sampled exactly-once" in first
    assert first.endswith("Other packages changed as well: a 1 -> 2, b not there -> 1.")
    assert "9rc1" in found.sentences()[1]
    assert "left points out" in found.sentences()[2]


def test_an_undecided_version_makes_a_range_and_an_undecided_end_is_named() -> None:
    wrong, right = trial("0.0", "complete", "none"), trial("2.0", "complete", "exactly-once")
    unsure = Trial("1.0", not_tried="no wheel")
    found = answer(3, _0=wrong, _1=unsure, _2=right)
    assert "The exact version is unknown: 1 version (1.0) between them showed nothing." in found.sentences()[0]
    assert (found.is_definite, found.code()) == (False, 2)
    at_the_end = answer(3, _0=unsure, _1=right, _2=right)
    assert "Nothing is known about dlt 0.0." in at_the_end.sentences()
    assert at_the_end.code() == 2
    assert answer(1, _0=unsure).code() == 2


def test_ends_that_agree_say_what_was_not_tried() -> None:
    right = trial("0.0", "complete", "exactly-once")
    found = answer(5, _0=right, _4=trial("4.0", "complete", "exactly-once"))
    told = found.sentences()[0]
    assert "agree: complete exactly-once; fsync: withstood (2 of 2); 3 versions (1.0, 2.0, 3.0) between were" in told
    assert found.code() == 0


def test_the_newest_version_decides_about_an_expectation() -> None:
    good, bad = Trial("0.0", side=AS_EXPECTED), Trial("1.0", side=WEAKER)
    assert answer(2, _0=good, _1=bad).code("exactly-once") == 1
    assert answer(2, _0=bad, _1=good).code("exactly-once") == 0


def test_the_index_says_days_and_which_versions_are_yanked() -> None:
    files = [
        {"filename": "dlt-1.0-py3-none-any.whl", "upload-time": "2026-01-03T04:05:06Z", "yanked": "broken"},
        {"filename": "dlt-1.0.tar.gz", "upload-time": "2026-01-02T04:05:06Z", "yanked": True},
        {"filename": "dlt-1.1.tar.gz", "yanked": False},
        {"filename": "dlt-1.1-py3-none-any.whl", "yanked": True},
        {"filename": "nonsense.exe"},
    ]
    assert index.published(files) == ({"1.0": "2026-01-02"}, frozenset({"1.0"}))


def test_uv_gets_the_index_of_pip() -> None:
    listed = "global.index-url='https://a/simple'\n:env:.index-url='https://b/simple'\nfreeze.timeout='3'\n"
    assert uv_variables(listed) == {"UV_DEFAULT_INDEX": "https://b/simple"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--package", "dlt", "--command", "python job.py", "--read-command", "cat out"],
            "--command: {python} is missing",
        ),
        (["--package", "dlt", "--command", "{python} job.py"], "give --reader FILE:NAME"),
        (["--package", "dlt", "--read-command", "{python} rows.py"], "the command is empty"),
        (["--package", "dlt==1.0", *COMMANDS], "without a version"),
        (["--package", "dlt", "--versions", "1.0", *COMMANDS], "as in 1.18.0..1.31.0"),
        (["--package", "dlt", "--requirement", "==", *COMMANDS], "this is not a valid pip requirement"),
        (COMMANDS, "Missing option '--package'"),
        (["--package", "dlt", "--out", ".", *COMMANDS], "already exists"),
        (["--package", "dlt", *COMMANDS, "--fault", "flood"], "--fault flood"),
    ],
)
def test_bad_input_gets_one_sentence_before_anything_is_installed(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    assert sentence in refusal("bisect", *words, cwd=tmp_path)


def wheel(folder: Path, version: str, code: str, *needs: str) -> None:
    """Write a wheel of the package `tinysink` with one module."""
    info = f"tinysink-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {each}\n" for each in needs)
    files = {
        "tinysink.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tinysink\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / f"tinysink-{version}-py3-none-any.whl", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        names = "".join(f"{name},,\n" for name in files)
        archive.writestr(f"{info}/RECORD", f"{names}{info}/RECORD,,\n")


RENAMED = """
import os
def write(row):
    open("out/new", "w").write(row)
    os.replace("out/new", "out/rows")
"""
MARKED_FIRST = f"""{RENAMED}
write_rows = write
def write(row):
    if not os.path.exists("out/done"):
        open("out/done", "w").close()
        write_rows(row)
"""


@pytest.mark.variant
@pytest.mark.slow
@pytest.mark.usefixtures("watched_calls", "nothing_is_left")
def test_a_bisection_of_local_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels, place = tmp_path / "wheels", tmp_path / "place"
    wheels.mkdir()
    place.mkdir()
    wheel(wheels, "0.9", MARKED_FIRST)
    wheel(wheels, "0.10", MARKED_FIRST, "a-package-that-nobody-publishes")
    wheel(wheels, "0.11", RENAMED)
    wheel(wheels, "0.12rc1", MARKED_FIRST)
    (place / "job.py").write_text('import tinysink\ntinysink.write("1\\n")\n')
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ["bisect", "--package", "tinysink", "--command", "{python} job.py", "--watch", "out", "--quick", "--json"]
    words += ["--read-command", f"{sys.executable} -c 'print(*open(\"out/rows\"))' 2>/dev/null || true"]
    words += ["--reset", "rm -rf out; mkdir out", "--only", "rename rows #1"]
    code, out, err = labkit(*words, cwd=place)
    assert code == 2, err
    found = json.loads(out)
    assert found["versions"] == ["0.9", "0.10", "0.11"]
    assert found["left_out"] == {"pre_releases": ["0.12rc1"], "yanked": []}
    one, none, other = found["tried"]
    assert (one["side"], one["point"]) == ("at best at-most-once", "rename rows #1")
    assert "a-package-that-nobody-publishes" in none["not_tried"]
    assert other["words"].startswith("not refuted (1 of ")
    (change,) = found["changes"]
    assert (change["before"], change["after"], change["undecided"]) == ("0.9", "0.11", ["0.10"])
