"""A sink where system calls cannot be watched: it is killed between its lines, and never called exactly-once."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from crashtest_processes import left_over
from sink_texts import APPEND
from waiting import until

from labkit.core.judge import Guarantee
from labkit.crashtest import kernel
from labkit.crashtest.blackbox import campaign
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.jobs import middle
from labkit.crashtest.blackbox.outside import Outside
from labkit.crashtest.blackbox.points import choose, points
from labkit.crashtest.blackbox.seeing import Glance, doubts, showing
from labkit.crashtest.claim import Goal, Strength
from labkit.crashtest.kernel import SinkPipeline, kernel_campaign
from labkit.crashtest.page import certificate, page
from labkit.crashtest.settings import settings
from labkit.crashtest.verdict import AXES, Group
from labkit.host.file_reads import FileReads
from labkit.host.python_line import Line
from labkit.host.syscalls import guarding
from labkit.host.syscalls.calls import Call, CallKind

WHY = "System calls can be watched on Linux only, not on Darwin; use a Linux machine."

MARKER = """
import sqlite3
from pathlib import Path
STORE = Path("store.db")
def sink(df, batch):
    key = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch)
    connection = sqlite3.connect(STORE)
    if connection.execute("insert or ignore into done values (?, ?)", key).rowcount:
        connection.executemany("insert into rows values (?, ?, ?)", df.collect())
    connection.commit()
def read():
    return sqlite3.connect(STORE).execute("select * from rows").fetchall() if STORE.exists() else []
def reset():
    STORE.unlink(missing_ok=True)
    Path("store.db-journal").unlink(missing_ok=True)
    connection = sqlite3.connect(STORE)
    connection.execute("create table rows (id, key, amount)")
    connection.execute("create table done (query, batch, primary key (query, batch))")
"""


@pytest.fixture
def file(nothing_is_left: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for module in (kernel, campaign, guarding):
        monkeypatch.setattr(module, "supported", lambda: WHY)
    return folder / "job.py"


@pytest.mark.slow
@pytest.mark.spark
def test_a_sink_that_appends_is_refuted(file: Path, tmp_path: Path) -> None:
    """Killed when its last line is done, and before the engine has recorded the batch."""
    file.write_text(APPEND)
    with kernel_campaign(settings(f"{file}:sink", batches=2, seconds=900), tmp_path / "out") as running:
        running.healthy()
        jobs = {job.id: job for job in running.jobs()}
        for name in ("line job.py:7 return #1", "line job.py:8 #1"):
            running.run(jobs[name])
        report = running.report()
    print(report.text())
    once, twice = (
        next(each for each in report.summary.results if each.id.endswith(end)) for end in ("8 #1", "turn #1")
    )
    assert (once.unknown, once.guarantee) == ("", Guarantee.EXACTLY_ONCE)
    assert (twice.unknown, twice.guarantee) == ("", Guarantee.AT_LEAST_ONCE)
    assert report.claim.strength is Strength.REFUTED
    assert report.code(Goal.NOT_REFUTED) == 1
    assert [each.unknown for each in report.summary.unknown()] == []


@pytest.mark.slow
@pytest.mark.spark
def test_a_right_sink_is_not_refuted_and_never_exactly_once(file: Path, tmp_path: Path) -> None:
    """Although every point was tried, and nothing was wrong."""
    file.write_text(MARKER)
    with kernel_campaign(settings(f"{file}:sink", batches=1, seconds=1800), tmp_path / "out") as running:
        running.healthy()
        jobs = running.jobs()
        wanted = {"copied_checkpoint", "fresh_checkpoint", "two_queries", "later"}
        assert {job.id for job in jobs if job.group is not Group.CRASH} == wanted | {"two_instances"}
        for job in jobs:
            if job.group is Group.CRASH:
                running.run(job)
        assert list(running.last_jobs()) == []
        report = running.report()
    print(report.text())
    coverage = report.summary.coverage
    assert coverage.tried == coverage.found == 7
    assert coverage.hit == coverage.planned
    assert report.claim.strength is Strength.SAMPLED
    assert str(report.claim) == "not refuted (7 of 7 points between lines)"
    assert report.claim.guarantee is Guarantee.UNKNOWN
    assert (report.code(Goal.NOT_REFUTED), report.code(Goal.EXACTLY_ONCE), report.code(Goal.AT_LEAST_ONCE)) == (0, 2, 2)
    assert set(report.axes.values()) == {"not seen", "unknown"}
    assert [axis for axis in AXES if report.axes[axis] == "unknown"] == ["precommitted_read"]
    plain = report.to_json()
    assert (plain["eyes"], plain["claim"]["strength"]) == ("lines", "sampled")
    for made in (report.text(), page(report), certificate(report), report.junit(), report.badge()):
        assert "not refuted" in made
    assert any(WHY.rstrip(".") in note for note in report.notes)


JVM = """
import json, shutil, time
from pathlib import Path
STORE = Path("store")
def sink(stream):
    return stream.writeStream.format("json").option("path", str(STORE))
def read():
    return [json.loads(line) for path in sorted(STORE.glob("part-*.json")) for line in path.read_text().splitlines()]
def reset():
    shutil.rmtree(STORE, ignore_errors=True)
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "slow", [False, pytest.param(True, marks=pytest.mark.variant)], ids=["fast reader", "slow reader"]
)
def test_a_sink_in_the_jvm_is_unknown(file: Path, tmp_path: Path, slow: bool) -> None:
    """Whether the reader shows that rows come when no line runs, or is too slow to show when they come."""
    file.write_text(JVM.replace("def read():\n", f"def read():\n    time.sleep({0.6 if slow else 0})\n"))
    with kernel_campaign(settings(f"{file}:sink", batches=1, seconds=900), tmp_path / "out") as running:
        running.healthy()
        for job in running.jobs():
            if job.id == "line job.py:6 return #1":
                running.run(job)
        report = running.report()
    (seeing,) = [each for each in report.summary.results if each.group is Group.SEEING]
    assert ("too slow" in seeing.unknown, "writes unseen" in seeing.unknown) == (slow, not slow)
    assert report.summary.coverage.tried == 1
    assert report.claim.strength is Strength.UNKNOWN
    assert report.code(None) == report.code(Goal.NOT_REFUTED) == 2


@pytest.mark.slow
@pytest.mark.spark
def test_a_test_that_is_killed_leaves_no_process(file: Path, tmp_path: Path) -> None:
    """Neither Python nor Spark, whose driver was in the middle of a line."""
    file.write_text(
        APPEND.replace("    with STORE", "    import time; Path('begun').touch(); time.sleep(600)\n    with STORE")
    )
    code = f"""
from labkit.crashtest import kernel
from labkit.crashtest.blackbox import campaign
from labkit.crashtest.settings import settings
kernel.supported = campaign.supported = lambda: "no"
with kernel.kernel_campaign(settings("{file}:sink")) as running:
    running.healthy()
"""
    with subprocess.Popen([sys.executable, "-P", "-c", code], cwd=file.parent) as runner:
        until((file.parent / "begun").exists, "the sink to be called", 180)
        assert any("java" in psutil.Process(pid).name() for pid in left_over())
        runner.send_signal(signal.SIGKILL)
    until(lambda: not left_over(), "the end of its processes", 30)


def effects(place: Path, *lines: str, thread: int = 1) -> list[Effect]:
    """Effects of one start: a number is that of a line of sink.py, and `8 return` the return from there."""
    namer, named = Namer([place, place / "elsewhere"], ["sink*"]), []
    for number, text in enumerate((*lines, "exit"), start=1):
        path = str(place / "sink.py")
        at, _, returns = text.partition(" ")
        line = None if text == "exit" else Line(path, int(at), "sink")
        kind = CallKind.LINE if line else CallKind.EXIT
        call = Call(number, thread, 1, kind, returns or "line", path if line else "", "", 0, 0.1 * number, line=line)
        named.append(namer.name(call))
    return named


BATCH = ("5", "2026", "2026 return")


def test_a_line_is_named_by_its_file_and_number(tmp_path: Path) -> None:
    """With nothing masked, since no line is another one by chance; and whatever files `--ignore` leaves out."""
    found = effects(tmp_path, *BATCH, *BATCH)
    assert [each.name for each in found] == [
        "line sink.py:5 #1",
        "line sink.py:2026 #1",
        "line sink.py:2026 return #1",
        "line sink.py:5 #2",
        "line sink.py:2026 #2",
        "line sink.py:2026 return #2",
        "exit",
    ]
    assert len({each.family for each in found}) == 4
    assert [each.name for each in points(found)] == [each.name for each in found]
    assert {each.file for each in found} == {""}


def test_a_line_explains_rows_and_a_return_does_not(tmp_path: Path) -> None:
    """After a return only threads, workers and the JVM can still write, and nobody is killed while they do."""
    found = effects(tmp_path, *BATCH)
    within_line = glances(*[{}] * 2, *[{"[1]": 1}] * 3)
    assert doubts(within_line, found, {}, [tmp_path], by_lines=True) == []
    shown = showing(within_line, found)
    assert shown == {"line sink.py:2026 #1"}
    assert "line sink.py:2026 return #1" in [each.name for each in choose(found, shown, 2)]
    (unseen,) = doubts(glances(*[{}] * 3, *[{"[1]": 1}] * 2), found, {}, [tmp_path], by_lines=True)
    assert "neither Spark's workers nor the JVM" in unseen
    (nothing,) = doubts(glances({}, {}), found[-1:], {}, [tmp_path], by_lines=True)
    assert "no line of the sink was seen" in nothing


def glances(*rows: dict[str, int]) -> list[Glance]:
    return [Glance(happened, each) for happened, each in enumerate(rows)]


def test_what_depends_on_the_engine_s_renames_is_not_judged(tmp_path: Path) -> None:
    found = effects(tmp_path, *BATCH, *BATCH)
    pipeline = SinkPipeline(
        pipeline="true", read_command="true", checkpoint=tmp_path / "checkpoint", folder=tmp_path, unwatchable=WHY
    )
    assert {pipeline.unfinished(found, each.name) for each in found} == {()}
    assert pipeline.unjudged(found) == pipeline.unjudged(found[-1:]) == ("precommitted_read",)
    assert pipeline.minor(found) == frozenset()
    assert middle(found, tmp_path / "checkpoint").name == found[4].name


def test_a_line_changes_no_file(tmp_path: Path) -> None:
    """Its own file lies outside of the watched folders here, and is no state of the sink's."""
    outside = Outside([tmp_path / "elsewhere"], [])
    changes = outside.changes()
    for each in effects(tmp_path, *BATCH):
        changes(each.call)
    assert changes.all == set()


def test_without_inotify_every_file_counts_as_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS, where the C library has no such function."""
    monkeypatch.setattr("labkit.host.file_reads.ctypes.CDLL", lambda *_, **__: object())
    (tmp_path / "file").touch()
    with FileReads([tmp_path], [tmp_path / "file"]) as reads:
        assert not reads.covers(tmp_path / "file")
        assert not reads.is_only_written(tmp_path / "file")
