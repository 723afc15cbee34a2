"""Real programs, real SIGKILL at their system calls: every wrong pipeline is caught, and every right one passes.

What each must show was written down before it was run, in data/pipelines/expected.toml.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from crashtest_processes import left_over
from pipeline_samples import PIPELINES, copied, expected, report_on

from labkit.core.judge import Outcome
from labkit.crashtest.report import Report
from labkit.crashtest.verdict import AXES
from labkit.host.syscalls.support import supported

FAST = ("wrong_marker_after", "right_move")
"""Those that every run of the tests has; the others are slow."""

WHOLE = ("wrong_marker_after", "wrong_rewind", "right_rename", "right_one_transaction")
"""Those of which everything is run that `--quick` runs."""


@pytest.fixture(autouse=True)
def _place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    if why := supported():
        pytest.skip(why)
    callspec = getattr(request.node, "callspec", None)
    name = callspec.params.get("name") if callspec else None
    needs = expected()[name].get("needs") if name else None
    if needs and shutil.which(needs) is None:
        pytest.skip(f"No {needs} on PATH.")
    copied(tmp_path, monkeypatch)
    yield
    assert left_over() == []


def violated(report: Report) -> set[str]:
    axes = report.summary.axes
    return {axis for axis, outcome in axes.items() if outcome is Outcome.VIOLATED}


def check(name: str, report: Report) -> None:
    """Compares a report with what was expected of the pipeline."""
    print(report.text())
    wanted = expected()[name]
    unknown = {each.id: each.unknown for each in report.summary.unknown()}
    seeing = unknown.pop("seeing", "")
    assert bool(seeing) == ("seeing" in wanted)
    assert wanted.get("seeing", "") in seeing
    assert unknown == {}
    assert report.summary.guarantee == wanted["guarantee"]
    assert violated(report) - set(wanted.get("sometimes", ())) == set(wanted["axes"])
    assert (report.diagnosis.code if report.diagnosis else "") == wanted["pattern"]
    assert report.summary.coverage.hit == report.summary.coverage.planned


@pytest.mark.parametrize(
    "name",
    [
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
        for name in expected()
    ],
)
def test_a_pipeline_is_what_was_expected_of_it(name: str) -> None:
    check(name, report_on(name, only=expected()[name]["shown_by"]))


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_quick_test_says_the_same(name: str) -> None:
    report = report_on(name)
    check(name, report)
    assert report.summary.coverage.planned >= 12


def test_every_program_has_its_prediction() -> None:
    programs = {path.stem for path in PIPELINES.iterdir() if path.is_file()}
    assert programs - {"rows", "expected", "cells", "README", "engines"} == set(
        expected()
    )
    for wanted in expected().values():
        assert set(wanted["axes"]) <= set(AXES)
        assert wanted["shown_by"]
