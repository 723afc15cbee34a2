"""The page of a test: whole in one file, nothing asked of another host, every kill where it was and as it came out."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from crashtest_reports import report_of

from labkit.core.judge import judge
from labkit.core.records import History, Observation, Record, Visibility
from labkit.crashtest.page import effects_and_kills, page
from labkit.crashtest.report import Report
from labkit.crashtest.settings import settings
from labkit.crashtest.verdict import Coverage, Group, Result, summarise
from labkit.view.effects import SHADES, Row, What, effect_line

DUE = [Record(0, "k", 1)]
EFFECTS = [
    {"name": "create rows<1> #1", "kind": "create", "line": "a.py:2 in sink"},
    {"name": "sync rows<1> #1", "kind": "sync", "line": ""},
    {"name": "rename commits/<n> #1", "kind": "rename", "line": ""},
    {"name": "exit", "kind": "exit", "line": ""},
]


def result(name: str, copies: int) -> Result:
    """A run that was killed at a point, after which the one row is there so many times."""
    row = Observation(*DUE[0], 0, 1, Visibility.COMMITTED)
    verdict = judge(DUE, History([row] * copies, keyed=False, planned_batches=[]))
    return Result(name, f"before {name}", Group.CRASH, verdict=verdict)


RESULTS = [result("create rows<1> #1", 1), result("rename commits/<n> #1", 2), result("exit", 1)]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return report_on(tmp_path, RESULTS)


def report_on(folder: Path, results: Sequence[Result], only: tuple[str, ...] = ()) -> Report:
    file = folder / "a<b>.py"
    file.write_text("def sink(df, batch): ...\n")
    wanted = settings(f"{file}:sink", only=only)
    return report_of(wanted, summarise(results, Coverage(7, 0, 3, 3)), EFFECTS)


def texts(picture: str) -> list[str]:
    return ["".join(node.itertext()) for node in ET.fromstring(picture).iter() if node.tag.endswith("text")]


class Tags(HTMLParser):
    """Which tags are open, and which there were."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_nobody(report: Report) -> None:
    text = page(report)
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert not {"script", "link", "img", "iframe"} & tags.seen
    assert "a<b>" not in text  # what the user calls things is no markup
    addresses = set(re.findall(r"https?://[^\"' <]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "url(" not in text
    assert "labkit crashtest" in text
    assert "--only 'rename commits/&lt;n&gt; #1'" in text


def test_every_kill_stands_where_it_was(report: Report) -> None:
    found = texts(effects_and_kills(report))
    kept = [each for each in found if len(each) > 2]
    assert kept == [
        "killed before create rows<1> #1: exactly-once",
        "create rows<1> #1",
        "a.py:2 in sink",
        "sync rows<1> #1",
        "killed before rename commits/<n> #1 (duplicate): at-least-once",
        "rename commits/<n> #1",
        "killed before exit: exactly-once",
    ]


def test_the_picture_has_a_sign_and_a_shade_for_every_verdict() -> None:
    rows = [Row(What.KILL, "killed", verdict=verdict) for verdict in SHADES]
    drawn = effect_line([Row(What.LASTING, "a < b", "3  x < y"), *rows], title="t")
    tree = ET.fromstring(drawn)
    texts = ["".join(node.itertext()) for node in tree.iter() if node.tag.endswith("text")]
    assert {"a < b", "3  x < y"} <= set(texts)
    for verdict, (shade, sign) in SHADES.items():
        assert f"killed: {verdict}" in texts
        assert sign in texts
        assert shade in drawn
    assert len({sign for _, sign in SHADES.values()}) == len(SHADES)


def kills(report: Report) -> list[str]:
    return [each.rpartition(": ")[2] for each in texts(effects_and_kills(report)) if each.startswith("killed")]


def test_of_a_test_that_was_not_whole_no_kill_is_told_by_a_guarantee(tmp_path: Path) -> None:
    assert kills(report_on(tmp_path, RESULTS, ("exit",))) == ["nothing broke", "it breaks", "nothing broke"]
    dark = replace(RESULTS[0], unknown="no answer", verdict=None)
    for each, word in ((dark, "unknown"), (replace(dark, stuck="x"), "it breaks")):
        assert kills(report_on(tmp_path, [each], ("exit",))) == [word]


def test_no_verdict_is_shown_as_a_pass_that_is_none(tmp_path: Path) -> None:
    assert kills(report_on(tmp_path, [Result("exit", "x", Group.CRASH)])) == ["unknown"]
