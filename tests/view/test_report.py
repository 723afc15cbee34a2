"""What a person sees of a run: the timeline as text, and a page that opens without a network."""

import re
from pathlib import Path
from typing import Any

from ended_runs import CRASH

from labkit.core.failpoints import Crash, FailPoint
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.runs.history import written
from labkit.runs.layout import RunFolder
from labkit.runs.pages.report import write_report
from labkit.runs.record import RunRecord
from labkit.runs.scenario import plan
from labkit.view.timeline import LONGEST, Step, by_key, timeline

BACK = [
    Observation(0, "hello", 1, 0, 1),
    Observation(2, "hello", 2, 0, 1),
    Reading("crash 1"),
    Observation(0, "hello", 1, 0, 2),
    Observation(1, "world", 1, 0, 2),
    Observation(2, "hello", 2, 0, 2),
    Reading("end"),
]


def test_the_timeline_is_one_line_with_the_crash_in_it():
    assert timeline(BACK) == "hello=1 hello=2 | crash 1 | hello=1 world=1 hello=2"


def test_a_long_timeline_leaves_its_middle_out():
    shown = timeline(Observation(number, "a", number, 0, 1) for number in range(LONGEST + 40))
    assert "... 40 more ..." in shown
    assert shown.startswith("a=0 ")
    assert shown.endswith(f"a={LONGEST + 39}")


def test_nothing_seen_is_said():
    assert timeline([Reading("end")]) == "nothing"


def test_every_key_has_its_own_track_from_the_beginning():
    tracks = by_key(BACK)
    assert [step.value for step in tracks["hello"]] == [1, 2, None, 1, 2, None]
    assert [step.label for step in tracks["world"]] == ["crash 1", "offset 1, driver 2", "end"]
    assert tracks["world"][0] == Step("crash 1")


def page_of(expected: list[Record], events: list[Observation | Reading], crash: dict[str, Any], place: Path) -> str:
    folder = RunFolder(place)
    verdict = judge(expected, History(written(events, folder.history)))
    record = RunRecord(plan(crashes=["sink.mid_write@0"]), folder, verdict, [crash])
    write_report([record], place / "report.html", "A title", "A lead.")
    return (place / "report.html").read_text()


def test_a_page_says_whose_processes_were_killed(tmp_path: Path) -> None:
    expected = [Record(0, "hello", 1)]
    driver, executor = (page_of(expected, BACK, crash, tmp_path) for crash in (CRASH, {**CRASH, "executor": 7}))
    assert "processes of the driver" in driver
    assert "Before the job ran again" in driver
    assert "processes of the executor; the driver continued" in executor
    assert "Before the job ran again" not in executor


def test_the_page_marks_what_went_back_and_names_no_other_host(tmp_path: Path):
    expected = [Record(0, "<hello>", 1), Record(1, "world", 1), Record(2, "<hello>", 2)]
    events = [
        event._replace(key="<hello>") if isinstance(event, Observation) and event.key == "hello" else event
        for event in BACK
    ]
    page = page_of(expected, events, CRASH, tmp_path)
    assert len(re.findall(r'class="value back"', page)) == 1
    assert "&lt;hello&gt;" in page
    assert "<hello>" not in page
    assert "offsets/0" in page
    assert str(Crash(FailPoint.MID_WRITE)) in page
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#)", page)
    assert "://" not in page
