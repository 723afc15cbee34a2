"""Runs of a campaign side by side: the same report as one after the other, and only where they cannot meet."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pipeline_samples import copied, expected, options

from labkit.crashtest.blackbox.campaign import crash_test_pipeline
from labkit.crashtest.report import Report

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _place(watched_calls: None, nothing_is_left: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(tmp_path, monkeypatch)


def report_of(name: str, parallel: int, **more: Any) -> tuple[Report, list[str]]:
    """A sample's report, and what was told meanwhile."""
    told: list[str] = []
    wanted = options(name) | {"parallel": parallel} | more
    command = wanted.pop("command", expected()[name]["command"])
    report = crash_test_pipeline(command, **wanted, tell=lambda _, said: told.append(said))
    return report, told


def said(report: Report) -> dict[str, Any]:
    """All that a report says, apart from times, process numbers, the drawing of them, and `--parallel` itself."""
    plain = report.to_json()
    for run in plain["runs"]:
        del run["seconds"]
        run["evidence"] = [
            {"point": each["point"], "call": each["call"], "path": each["path"]} for each in run["evidence"]
        ]
    for each in plain["effects"]:
        each.pop("seconds", None)
    for name in ("weakest", "timeline", "command"):
        del plain[name]
    return plain


def test_runs_side_by_side_say_what_runs_one_after_the_other_say() -> None:
    alone, told = report_of("wrong_marker_after", 1, limit=20)
    assert not any("at a time" in each for each in told)
    beside, told = report_of("wrong_marker_after", 3, limit=20)
    assert "3 runs at a time, each in a copy of this folder" in told
    assert said(beside) == said(alone)
    results = beside.summary.results
    assert [each.id for each in results] == [each.id for each in alone.summary.results]


def elsewhere(folder: Path) -> dict[str, Any]:
    return {"watch": ["input", "store", str(folder / "elsewhere")]}


def by_name(_folder: Path) -> dict[str, Any]:
    here = Path.cwd()
    return {"command": f"cd {here} && sh wrong_marker_after.sh"}


def beside_it(folder: Path) -> dict[str, Any]:
    return {"command": f"sh wrong_marker_after.sh; echo 1 >> {folder / 'noted'}"}


def too_large(_folder: Path) -> dict[str, Any]:
    for number in range(2_001):
        Path(f"store-{number}").touch()
    return {}


def own_reader(_folder: Path) -> dict[str, Any]:
    text = Path("rows.py").read_text().replace('"store"', f'"{Path.cwd() / "store"}"')
    Path("fixed.py").write_text(text)
    return {"reader": "fixed.py:read_all"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(elsewhere, "elsewhere lies outside of the pipeline's folder", marks=pytest.mark.variant),
        pytest.param(by_name, "runs in two copies of the folder would both use", marks=pytest.mark.variant),
        pytest.param(beside_it, "noted", marks=pytest.mark.variant),
        pytest.param(too_large, "more than 2000 files", marks=pytest.mark.variant),
        (own_reader, "in a copy of this folder the pipeline behaves differently"),
    ],
)
def test_runs_that_would_meet_are_made_one_after_the_other(
    tmp_path: Path, change: Callable[[Path], dict[str, Any]], why: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    wanted = {"quick": True} | change(tmp_path)
    report, told = report_of("wrong_marker_after", 3, **wanted)
    (sentence,) = (each for each in told if each.startswith("one run at a time: "))
    assert why in sentence
    assert report.claim.at_best == "at-least-once"
    assert report.summary.coverage.hit == report.summary.coverage.planned


def test_what_runs_at_a_time_leaves_no_folder_behind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    report_of("right_move", 2, folder=out)
    assert not list(tmp_path.glob("job/*/store"))
    shutil.rmtree(out)
