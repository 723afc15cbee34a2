"""The certificate: one page, whole in one file, that never says more than the report, whatever the runs were."""

import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from crashtest_reports import report_of

from labkit import __version__
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Record, Visibility
from labkit.crashtest.page import MOST_RUNS, certificate
from labkit.crashtest.report import Report
from labkit.crashtest.settings import settings
from labkit.crashtest.verdict import Coverage, Group, Result, summarise

DUE = [Record(0, "k", 1), Record(1, "l", 1)]


def result(copies: int, name: str = "b0.call.2.after", group: Group = Group.CRASH) -> Result:
    """A run after which the first of two rows is there so many times."""
    one, other = (Observation(*row, 0, 1, Visibility.COMMITTED) for row in DUE)
    seen = [*[one] * copies, other]
    verdict = judge(DUE, History(seen, keyed=False, planned_batches=[]))
    return Result(name, f"killed at {name}", group, verdict=verdict)


RIGHT = result(1, "b0.call.1.before")
TWICE = result(2)
LOST = result(0, "b0.call.returns")
DARK = Result("b1.call.1.before", "y", Group.CRASH, unknown="the point was not reached")
SEEING = Result("seeing", "z", Group.SEEING, unknown="something writes unseen")


def report(folder: Path, runs: Sequence[Result], *, only: tuple[str, ...] = (), of: int = 0) -> Report:
    """The report of a sink's test with these runs, out of so many points; 0: no other points."""
    file = folder / "a<b>.py"
    file.write_text("def sink(df, batch):\n    ...\n")
    tried = sum(each.group is Group.CRASH for each in runs)
    coverage = Coverage(of or tried, 0, len(runs), len(runs), tried, selected=bool(only))
    summary = summarise(runs, coverage)
    wanted = settings(f"{file}:sink", only=only, quick=True)
    return report_of(wanted, summary)


def large_word(page: str) -> str:
    """What stands in large letters, without its sign."""
    (found,) = re.findall(r'<p class="w"[^>]*>(.*?)</p>', page)
    return str(found).partition(" ")[2]


def cells(page: str, first: str) -> list[str]:
    """The other cells of the row that begins so."""
    (row,) = re.findall(rf"<tr><th scope=.row.>{first}</th>(.*?)</tr>", page)
    return re.findall(r"<td>(.*?)</td>", row)


@pytest.mark.parametrize(
    ("runs", "guarantee"),
    [
        ([RIGHT], "exactly-once"),
        ([RIGHT, TWICE], "at-least-once"),
        ([RIGHT, LOST], "at-most-once"),
        ([TWICE, LOST], "none"),
        ([RIGHT, DARK], "unknown"),
        ([TWICE, DARK], "not exactly-once, at best at-least-once"),
        ([RIGHT, SEEING], "unknown"),
        ([DARK], "unknown"),
        ([], "unknown"),
    ],
    ids=("right", "twice", "lost", "both", "dark", "twice and dark", "doubt", "only dark", "nothing"),
)
def test_the_large_word_is_that_of_the_report(tmp_path: Path, runs: list[Result], guarantee: str) -> None:
    tested = report(tmp_path, runs)
    page = certificate(tested)
    assert large_word(page) == str(tested.claim) == guarantee


@pytest.mark.parametrize(
    ("run", "word"),
    [(RIGHT, "not refuted (1 of 1 points)"), (TWICE, "not exactly-once, at best at-least-once")],
    ids=["right", "wrong"],
)
def test_one_run_alone_certifies_nothing(tmp_path: Path, run: Result, word: str) -> None:
    page = certificate(report(tmp_path, [run], only=(run.id,)))
    assert large_word(page) == word
    assert "<td>holds</td>" not in page
    assert unescape(page).count(f"--only {run.id}") == 1


def test_several_runs_alone_are_repeated_one_by_one(tmp_path: Path) -> None:
    page = certificate(report(tmp_path, [RIGHT, LOST], only=(RIGHT.id, LOST.id)))
    assert f"--only {RIGHT.id}\n" in page
    assert f"--only {LOST.id}</code></pre>" in page


def test_an_axis_says_what_the_report_says_and_how_many_runs_say_so(tmp_path: Path) -> None:
    page = certificate(report(tmp_path, [RIGHT, TWICE, SEEING]))
    assert cells(page, "duplicate") == ["violated", f"1 of 2, as {TWICE.id}"]
    assert cells(page, "lost") == ["unknown", ""]
    page = certificate(report(tmp_path, [RIGHT, TWICE]))
    assert cells(page, "lost") == ["holds", "2 of 2"]


def test_a_run_that_proves_nothing_is_counted_as_unknown(tmp_path: Path) -> None:
    bare = Result("b2.call.returns", "no verdict", Group.CRASH)
    page = certificate(report(tmp_path, [RIGHT, TWICE, DARK, bare]))
    assert cells(page, "crash") == ["4", "1", "1", "2"]
    assert f"Unknown: {DARK.id}: {DARK.unknown}" in page
    assert f"Unknown: {bare.id}: the run has no verdict" in page


def test_a_doubt_beside_a_violation_hides_neither(tmp_path: Path) -> None:
    both = replace(TWICE, unknown="a process was left behind")
    page = certificate(report(tmp_path, [RIGHT, both]))
    assert cells(page, "crash") == ["2", "1", "1", "0"]
    assert f"Unknown: {both.id}: a process was left behind" in page
    assert f"{both.id}: unknown (duplicate)" in page


def test_a_condition_stands_outside_of_the_guarantee(tmp_path: Path) -> None:
    other = result(0, "other_rows", Group.CONDITION)
    page = certificate(report(tmp_path, [RIGHT, other]))
    assert large_word(page) == "exactly-once"
    assert cells(page, other.title) == ["at-most-once", "a condition, outside the guarantee"]
    assert cells(page, "lost") == ["holds", "1 of 1"]


def test_what_was_not_measured_stands_on_the_page(tmp_path: Path) -> None:
    tested = replace(report(tmp_path, [RIGHT, TWICE], of=9), notes=("a < note",))
    page = certificate(tested)
    assert tested.untested in unescape(page)
    assert "7 of 9 points have no run of their own." in page
    assert "a &lt; note" in page
    assert f"labkit {__version__}" in page


def test_no_run_is_left_out_without_a_word(tmp_path: Path) -> None:
    runs = [result(1, f"b{number}.call.returns") for number in range(MOST_RUNS + 3)]
    page = certificate(report(tmp_path, [*runs, TWICE]))
    assert cells(page, "crash")[0] == str(MOST_RUNS + 4)
    assert "And 4 more." in page
    listed = re.findall(r"<li><span[^>]*>[^<]+</span> ([^:]+):", page)
    assert len(listed) == MOST_RUNS
    assert listed[0] == TWICE.id


def test_the_page_asks_nobody_and_takes_no_name_for_markup(tmp_path: Path) -> None:
    page = certificate(report(tmp_path, [RIGHT]))
    assert "a<b>" not in page
    assert "a&lt;b&gt;" in page
    assert not re.search(r"https?://|<script|<link|<img|<iframe|url\(", page)
    assert "labkit crashtest" in page
    assert page == certificate(report(tmp_path, [RIGHT]))


def test_a_sample_is_said_to_be_one_in_large_letters(tmp_path: Path) -> None:
    page = certificate(report(tmp_path, [RIGHT], of=9))
    assert large_word(page) == "not refuted (1 of 9 points)"
    assert "<td>holds</td>" not in page
    assert cells(page, "lost") == ["not seen", "1 of 1"]
