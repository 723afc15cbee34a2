"""Calls of a pipeline that fail while it goes on: every wrong sample is found, every right one passes, and what was not
delivered never counts as tried.

What each must show was written down before it was run, in data/pipelines/faults/expected.toml.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from choosing import slow_but, variant_but
from crashtest_reports import flat, report_of
from pipeline_samples import PIPELINES, copied
from waiting import until

from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.crashtest.blackbox.campaign import crash_test_pipeline
from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.execution import NEVER_REACHED, Over, Start, undelivered
from labkit.crashtest.blackbox.points import Point
from labkit.crashtest.blackbox.unsynced import Unsynced
from labkit.crashtest.claim import Goal, fault_claims
from labkit.crashtest.report import Report
from labkit.crashtest.rows import Seen, Shape, generate
from labkit.crashtest.samples import Sample, judge_run
from labkit.crashtest.settings import Settings
from labkit.crashtest.subject import Subject
from labkit.crashtest.verdict import Coverage, Group, Result, Summary, summarise
from labkit.host.syscalls.calls import Answer, Call, CallKind, WatchedRun
from labkit.host.syscalls.faults import Delivery, Fault

SAMPLES: dict[str, dict[str, Any]] = tomllib.loads((PIPELINES / "faults" / "expected.toml").read_text("utf-8"))
FAST = ("right_short_write",)
VARIANTS = ("wrong_unchecked", "right_sync", "wrong_sync_again", "right_stop", "right_wait", "right_worker")
"""Others show the same fault; these take longest."""


@pytest.fixture
def _folder(watched_calls: None, nothing_is_left: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(tmp_path, monkeypatch)


@contextmanager
def receiving(sample: dict[str, Any]) -> Iterator[None]:
    """The server that a sample needs, if it needs one."""
    if "server" not in sample:
        yield
        return
    with subprocess.Popen([sys.executable, sample["server"], "0"]) as server:
        until(lambda: Path("port").exists() and Path("port").read_text(), "the receiver's port")
        try:
            yield
        finally:
            server.terminate()


def report_on(name: str, **more: Any) -> Report:
    sample = SAMPLES[name]
    options = {"reader": f"rows.py:{sample['reader']}", "expected": "rows.py:expected", "watch": ["input", "store"]}
    with receiving(sample):
        return crash_test_pipeline(sample["command"], **options, quick=True, seconds=900, **more)


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("name", slow_but(FAST, list(SAMPLES), VARIANTS))
def test_a_sample_under_its_fault_is_what_was_expected_of_it(name: str) -> None:
    sample = SAMPLES[name]
    more = {"delay": sample["delay"]} if "delay" in sample else {}
    report = report_on(name, fault=[sample["fault"]], only=sample.get("only", [sample["fault"]]), **more)
    print(report.text())
    [claim] = report.faults
    assert str(claim).startswith(sample["claim"])
    results = [each for each in report.summary.results if each.fault == sample["fault"]]
    assert {axis for each in results for axis in each.violated} == set(sample.get("axes", ()))
    assert claim.tried == len(results)
    assert (claim.tried == claim.found) == ("only" not in sample)
    diagnosed = report.fault_diagnoses.get(claim.fault)
    assert (diagnosed.code if diagnosed else None) == sample.get("pattern")
    assert str(report.claim) == "unknown"  # faults alone say nothing of crashes
    assert report.reaches(Goal.AT_MOST_ONCE if "axes" not in sample else Goal.EXACTLY_ONCE) is (
        False if "axes" in sample else None
    )


OPENED = """
import os
if os.path.exists("store/out"):
    raise SystemExit
file, source = os.open("store/.new", os.O_RDWR | os.O_CREAT | os.O_TRUNC), os.open("source", os.O_RDONLY)
"""
PUBLISHED = """
os.fsync(file)
os.rename("store/.new", "store/out")
"""
IN_PLACE = """
import os
if not os.path.exists("store/out"):
    with open("store/.new", "wb") as new:
        new.write(b"?" * 8)
        new.flush()
        os.fsync(new.fileno())
    os.rename("store/.new", "store/out")
file = os.open("store/out", os.O_RDWR)
for place in range(8):
    os.pwrite(file, b"1", place)
try:
    os.fsync(file)
except OSError:
    pass
"""
ONE = "for one in b'11111111':\n    os.write(file, bytes([one]))\n"
LOOP = "rest = b'11'\nwhile rest:\n    rest = rest[os.write(file, rest) :]\n"
COPY = "os.copy_file_range(source, file, 8)"
VECTORS = 'os.pwritev(file, [b"1111", b"1111"], 0)'
PARTLY = {
    "vectors at a place": ("short-write", OPENED + VECTORS + PUBLISHED, "at best at-most-once"),
    "a copy in the kernel": ("short-write", OPENED + LOOP + COPY + PUBLISHED, "not refuted (1 of 2 calls)"),
    "only a copy in the kernel": ("short-write", OPENED + COPY + PUBLISHED, "unknown (0 of 1 calls)"),
    "no write that can be short": ("short-write", OPENED + ONE + PUBLISHED, "none of the observed calls can suffer it"),
    "bytes in place": ("fsync", IN_PLACE, "not refuted (1 of 2 calls)"),
}
"""Pipelines with calls whose fault cannot be delivered, or not in full: the fault, the text, how the claim begins."""


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("name", PARTLY)
def test_what_could_not_be_delivered_was_not_withstood(name: str) -> None:
    fault, text, said = PARTLY[name]
    Path("job.py").write_text(text)
    Path("source").write_bytes(b"1" * 8)
    Path("store").mkdir(exist_ok=True)
    Path("bytes_of.py").write_text(
        "from pathlib import Path\nOUT = Path('store/out')\n"
        "def reset():\n    for each in OUT.parent.iterdir():\n        each.unlink()\n"
        "def read():\n    return [[place] for place in range(OUT.read_bytes().count(b'1'))] if OUT.exists() else []\n"
    )
    report = crash_test_pipeline(
        f"{sys.executable} -S job.py",
        reader="bytes_of.py:read",
        watch=["store"],
        quick=True,
        fault=[fault],
        only=[fault],
    )
    print(report.text())
    [claim] = report.faults
    assert str(claim).startswith(said)


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"only": ["eio"]}, "--only eio: this run injects a fault; add --fault eio"),
        ({"only": ["eio at write nothing #1"], "fault": ["eio"]}, "did you mean 'eio at write "),
        ({"fault": ["eio,,fsync"]}, "--fault : unknown; "),
    ],
)
def test_a_fault_that_was_not_asked_for_or_has_no_name_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        report_on("right_short_write", **options)


@pytest.mark.slow
@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("name", variant_but(["wrong_unchecked"], SAMPLES))
def test_under_kills_alone_nothing_is_wrong_with_any_sample(name: str) -> None:
    report = report_on(name)
    assert str(report.claim).startswith(("not refuted", "exactly-once"))
    assert {each["claim"] for each in report.to_json()["faults"].values()} == {"unknown (not tried)"}


def start(*faults: Delivery) -> Start:
    """A start with two effects, calls 4 and 5, of which some suffered faults."""
    calls = [
        Call(number, 1, 1, CallKind.WRITE, "write", f"/{name}", "", 8, 0.0) for number, name in ((4, "a"), (5, "b"))
    ]
    effects = [Effect(call, call.path[1:], 1, call.path[1:]) for call in calls]
    return Start(effects, WatchedRun(0, None, None, 2, faults=faults), Over.ENDED, Path("log"))


HERE = Delivery(Fault.EIO, 4, -5)
WRONG = {
    "none": [],
    "twice": [HERE, HERE],
    "at another call": [HERE._replace(call=5)],
    "another fault": [HERE._replace(fault=Fault.EINTR)],
    "failed": [HERE._replace(failure="the call was interrupted")],
}


def test_a_fault_counts_if_the_call_at_its_point_suffered_it_once() -> None:
    point = Point("write a #1", 1)
    assert undelivered(start(HERE), point, Fault.EIO) == ""
    assert {name for name, faults in WRONG.items() if not undelivered(start(*faults), point, Fault.EIO)} == set()
    assert undelivered(start(HERE), Point("write c #1", 1), Fault.EIO) == NEVER_REACHED


def result(name: str, verdict: Verdict | None, **more: Any) -> Result:
    group = Group.FAULT if " at " in name else Group.CRASH
    return Result(name, name, group, verdict, evidence=[{"silent": True}], **more)


ROWS = generate(1, per_batch=4)


def judged(seen: Sequence[Seen]) -> Verdict:
    return judge_run([Sample(0, 1, tuple(seen), "end")], ROWS, Shape.ROWS, ROWS.expected())[0]


ALL = [Seen(**row) for row in ROWS.batches[0].rows]
GOOD, LOSES = judged(ALL), judged(ALL[1:])


def summary(*results: Result, **faults: int) -> Summary:
    return summarise([result("exit", GOOD), *results], Coverage(1, 0, 1, 1, 1), (), faults)


@pytest.mark.parametrize(
    ("results", "said", "exactly", "refuted"),
    [
        ([result("eio at a", GOOD), result("eio at b", GOOD)], "withstood (2 of 2 calls)", True, True),
        ([result("eio at a", GOOD)], "not refuted (1 of 2 calls)", None, True),
        ([], "unknown (0 of 2 calls)", None, None),
        ([result("eio at a", None, unknown="why", skipped=True)], "unknown (0 of 2 calls)", None, None),
        ([result("eio at a", GOOD), result("eio at b", None, unknown="why")], "unknown (1 of 2 calls)", None, None),
        (
            [result("eio at a", LOSES), result("eio at b", GOOD)],
            "at best at-most-once, although the command ended well (2 of 2 calls)",
            False,
            False,
        ),
    ],
)
def test_what_holds_under_a_fault_is_a_claim_apart(
    results: list[Result], said: str, exactly: bool | None, refuted: bool | None
) -> None:
    """Nothing of it makes the guarantee under crashes stronger or weaker, and a demand is a demand of both."""
    found = summary(*results, eio=2)
    report = report_of(Settings(sink=Subject(Path("sink.py"), "f"), reader=Subject(Path("sink.py"), "read")), found)
    assert str(report.claim) == "exactly-once"
    assert found.weakest is None
    assert set(report.axes.values()) == {"holds"}
    claims = {each.fault: str(each) for each in fault_claims(found)}
    assert claims[Fault.EIO] == said
    assert {claims[fault] for fault in set(Fault) - {Fault.EIO}} == {"unknown (not tried)"}
    assert report.reaches(Goal.EXACTLY_ONCE) is exactly
    assert report.reaches(Goal.NOT_REFUTED) is refuted
    assert f" under eio {said} " in flat(report)
    assert said in report.badge()
    assert ("<failure" in report.junit(Goal.NOT_REFUTED)) == (refuted is False)


def test_a_command_that_did_not_stop_in_time_is_counted_in_the_claim() -> None:
    late = replace(result("sigterm at a", GOOD), evidence=[{"silent": False, "overdue": True}])
    in_time = result("sigterm at b", GOOD)
    [claim] = [each for each in fault_claims(summary(late, in_time, sigterm=2)) if each.found]
    assert str(claim) == "withstood (2 of 2 calls, not stopped in time in 1)"
    assert claim.to_json()["overdue"] == 1


def test_a_doubt_about_what_the_test_sees_is_a_doubt_under_faults_too() -> None:
    doubt = replace(result("seeing", None, unknown="a mapped file"), group=Group.SEEING)
    [claim] = [each for each in fault_claims(summary(doubt, result("eio at a", GOOD), eio=1)) if each.found]
    assert str(claim) == "unknown (1 of 1 calls)"
    [none] = [each for each in fault_claims(summary(doubt, fsync=0)) if each.fault is Fault.FSYNC]
    assert (str(none), none.reaches(Goal.NOT_REFUTED)) == ("unknown (0 of 0 calls)", None)
    [none] = [each for each in fault_claims(summary(fsync=0)) if each.fault is Fault.FSYNC]
    assert (str(none), none.reaches(Goal.NOT_REFUTED)) == ("none of the observed calls can suffer it", True)


def call(kind: CallKind, path: Path, *, size: int = 0, offset: int = -1, target: str = "") -> Call:
    return Call(1, 1, 1, kind, "", str(path), target, size, 0.0, offset)


@pytest.mark.parametrize("again", [False, True])
def test_bytes_whose_sync_failed_are_gone_unless_they_were_written_anew(tmp_path: Path, again: bool) -> None:
    """Also if a later sync succeeds, and if the file has another name by then; synced bytes stay."""
    path, later, unsynced = tmp_path / "a", tmp_path / "b", Unsynced()
    unsynced.note(call(CallKind.CREATE, path))
    path.write_text("kept")
    unsynced.note(call(CallKind.SYNC, path))
    path.write_text("kept lost")
    unsynced.fail(call(CallKind.SYNC, path), Fault.FSYNC)
    unsynced.note(call(CallKind.SYNC, path))
    if again:
        unsynced.note(call(CallKind.WRITE, path, size=5, offset=4))
    unsynced.note(call(CallKind.RENAME, path, target=str(later)))
    path.rename(later)
    unsynced.drop()
    assert later.read_text() == ("kept lost" if again else "kept")


@pytest.mark.parametrize(
    ("name", "place", "left"),
    [("sync", "/", "kept"), ("syncfs", ".", "kept"), ("syncfs", "/proc/sys", ""), ("fsync", ".", "")],
)
def test_bytes_that_a_sync_of_everything_saved_are_kept(tmp_path: Path, name: str, place: str, left: str) -> None:
    """A syncfs saves the files of its own file system only."""
    path, unsynced = tmp_path / "a", Unsynced()
    unsynced.note(call(CallKind.CREATE, path))
    path.write_text("kept")
    unsynced.note(replace(call(CallKind.SYNC, tmp_path / place), name=name))
    path.write_text("kept lost")
    unsynced.fail(call(CallKind.SYNC, path), Fault.FSYNC)
    unsynced.drop()
    assert path.read_text() == left


@pytest.mark.usefixtures("_folder")
def test_a_fault_that_was_never_delivered_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labkit.crashtest.blackbox.execution.Execution.decide", _lets_all_happen)
    report = report_on("wrong_short_write", fault=["short-write"], only=["short-write at write store/.part-1 #1"])
    [claim] = report.faults
    assert str(claim) == "unknown (0 of 3 calls)"


def _lets_all_happen(self: Any, call: Call) -> Answer:
    return Answer.KILL if self._decide(call) is Answer.KILL else Answer.GO_ON
