"""The page of a test: whole in one file, nothing asked of another host, every kill where it was and as it came out."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from labkit.core.judge import judge
from labkit.core.records import History, Observation, Record, Visibility
from labkit.crashtest.instrument.effects import Effect, Kind, Point, Side
from labkit.crashtest.page import effect_rows, page
from labkit.crashtest.report import Report
from labkit.crashtest.rows import Shape
from labkit.crashtest.settings import settings
from labkit.crashtest.sink_report import sink_report
from labkit.crashtest.subject import Adapter
from labkit.crashtest.verdict import KERNEL, Coverage, Group, Result, summarise
from labkit.view.effects import SHADES, Row, What, effect_line

DUE = [Record(0, "k", 1)]
LOG = [
    Effect(0, "call", 0, Kind.BEGIN, "", 0),
    Effect(0, "call", 1, Kind.STATEMENT, "INSERT <rows>", 2),
    Effect(0, "call", 2, Kind.COMMIT, "transaction", 3),
    Effect(0, "call", 3, Kind.RETURN, "", 0),
]


def result(point: Point, copies: int) -> Result:
    """A run that was killed at a point, after which the one row is there so many times."""
    row = Observation(*DUE[0], 0, 1, Visibility.COMMITTED)
    verdict = judge(DUE, History([row] * copies, keyed=False, planned_batches=[]))
    return Result(point.id, str(point), Group.CRASH, (point,), verdict)


RESULTS = [
    result(LOG[1].point(Side.BEFORE), 1),
    result(LOG[2].point(Side.AFTER), 2),
    result(Point(0, "engine", 0, Kind.COMMITS, Side.AFTER), 1),
]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    file = tmp_path / "a<b>.py"
    file.write_text("def sink(df, batch):\n    db.execute('<rows>')\n    db.commit()\n")
    wanted = settings(f"{file}:sink")
    summary = summarise(RESULTS, Coverage(7, 0, 3, 3))
    return sink_report(wanted, Adapter.BATCH, Shape.ROWS, summary, LOG)


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
    assert "--only b0.call.2.after" in text


def test_the_page_says_whose_eyes_saw_the_effects(report: Report) -> None:
    assert "eyes: instruments, wrappers" in page(report)
    assert "eyes: the kernel, system calls" in page(replace(report, eyes=KERNEL))


def test_every_kill_stands_where_it_was(report: Report) -> None:
    rows = effect_rows(LOG, RESULTS, {2: "db.execute('<rows>')"})
    assert [row.label.partition(" by")[0] for row in rows] == [
        "batch 0, call begins",
        "killed at b0.call.1.before",
        "1  statement of INSERT <rows>",
        "2  commit of transaction",
        "killed at b0.call.2.after (duplicate)",
        "batch 0, call returns",
        "killed at b0.engine.commits",
    ]
    assert [row.verdict for row in rows if row.what is What.KILL] == ["exactly-once", "at-least-once", "exactly-once"]
    assert rows[2].code == "2  db.execute('<rows>')"


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


def test_of_a_test_that_was_not_whole_no_kill_is_told_by_a_guarantee(report: Report) -> None:
    rows = effect_rows(LOG, RESULTS, {}, is_whole=False)
    kills = [row.verdict for row in rows if row.what is What.KILL]
    assert kills == ["nothing broke", "it breaks", "nothing broke"]
    dark = replace(RESULTS[0], unknown="no answer", verdict=None)
    for each, word in ((dark, "unknown"), (replace(dark, stuck="x"), "it breaks")):
        rows = effect_rows(LOG, [each], {}, is_whole=False)
        assert [row.verdict for row in rows if row.what is What.KILL] == [word]


def test_no_verdict_is_shown_as_a_pass_that_is_none(report: Report) -> None:
    unknown = Result("b0.call.returns", "x", Group.CRASH, (LOG[3].point(Side.AFTER),))
    rows = effect_rows(LOG, [unknown], {})
    assert [row.verdict for row in rows if row.what is What.KILL] == ["unknown"]
