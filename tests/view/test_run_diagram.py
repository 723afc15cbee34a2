"""A real run as a space-time diagram: what its evidence says, and no more."""

import xml.etree.ElementTree as ET
from pathlib import Path

from labkit.core.failpoints import FailPoint
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading
from labkit.runs.history import written
from labkit.runs.layout import RunFolder
from labkit.runs.pages.diagram import MOST_EVENTS, of_run, write_diagram
from labkit.runs.record import RunRecord
from labkit.runs.scenario import plan
from labkit.view.spacetime import text

CRASH = {"point": FailPoint.MID_WRITE.value, "batch": 0, "signal": 9, "offset_log": [0], "commit_log": []}
CRASH |= {"recovery": ["aborted q-b0-p1"]}
ROWS = [Observation(0, "<hello>", 1, 0, 1), Observation(0, "<hello>", 1, 0, 2)]


def test_every_crash_has_its_evidence_and_every_row_its_place():
    lines = text(of_run([CRASH], [ROWS[0], Reading("crash 1"), ROWS[1], Reading("end")])).splitlines()
    assert [line.split(maxsplit=1)[0] for line in lines[1:]] == ["1", "2", "3", "4", "5", "6", "7"]
    assert "CRASH: signal 9 at sink.mid_write, batch 0" in lines[3]
    assert "left on disk: offsets [0], commits []" in lines[4]
    assert "RESTART: driver 2 starts; recovery: aborted q-b0-p1 [reaches checkpoint]" in lines[5]
    assert "reads at end" in lines[7]


def test_a_run_that_never_recovered_ends_with_its_last_crash():
    diagram = of_run([CRASH, CRASH], [Reading("crash 1"), Reading("crash 2"), Reading("end")])
    assert [step.event.value for step in diagram.steps].count("crash") == 2
    assert all(begun < ended <= len(diagram.steps) for _, begun, ended in diagram.downs)


def test_a_long_run_leaves_its_middle_out_and_says_so():
    many = [Observation(number, "a", number, 0, 1) for number in range(MOST_EVENTS + 50)]
    diagram = of_run([], [*many, Reading("end")])
    assert len(diagram.steps) == MOST_EVENTS + 3
    assert "50 more rows become visible" in text(diagram)


def test_it_is_written_into_the_runs_folder(tmp_path: Path):
    folder = RunFolder(tmp_path)
    events = [ROWS[0], Reading("crash 1"), ROWS[1], Reading("end")]
    verdict = judge([], History(written(events, folder.history)))
    write_diagram(RunRecord(plan(crashes=["sink.mid_write@0"]), folder, verdict, [CRASH]))
    drawn = (tmp_path / "spacetime.svg").read_text()
    assert ET.fromstring(drawn).tag.endswith("svg")
    assert "&lt;hello&gt; = 1 visible" in drawn
    assert "<hello>" not in drawn
