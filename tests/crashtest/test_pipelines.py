"""Real programs, real SIGKILL at their system calls: every wrong pipeline is caught, and every right one passes.

What each must show was written down before it was run, in data/pipelines/expected.toml.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from choosing import slow_but, variant_but
from crashtest_reports import flat
from pipeline_samples import PIPELINES, campaign_on, copied, expected, options, report_on

from labkit.core.errors import InvalidInput
from labkit.core.judge import Outcome
from labkit.crashtest.blackbox.campaign import REPLACED, crash_test_pipeline, pipeline_campaign
from labkit.crashtest.blackbox.jobs import GROWN, LATE, LATER, UNREAD, grown_input_job, single_job, unread_job
from labkit.crashtest.blackbox.points import QUICK, THEN
from labkit.crashtest.blackbox.runs import LEASE, OUTAGE
from labkit.crashtest.blackbox.settings import pipeline_settings
from labkit.crashtest.claim import Goal
from labkit.crashtest.report import Report
from labkit.crashtest.verdict import AXES

pytestmark = pytest.mark.usefixtures("nothing_is_left")

FAST = ("wrong_marker_after", "right_move")
"""Those that every run of the tests has; the others are slow."""
VARIANTS = (
    *("wrong_thread", "wrong_leftover", "wrong_complete", "wrong_taken_first", "wrong_grown", "wrong_replaced"),
    *("wrong_unsynced", "wrong_exists", "wrong_thirtieth", "wrong_wal", "wrong_stuck", "wrong_two_transactions"),
    *("right_endless", "wrong_attempts", "wrong_returns"),
)
"""Those that take longest; others err in the same places."""

WHOLE = (
    "wrong_marker_after",
    "wrong_rewind",
    "wrong_undo",
    "wrong_parity",
    "wrong_two_batches",
    "wrong_size",
    "wrong_later",
    "right_rename",
    "right_one_transaction",
    "right_rewritten",
    "right_lease",
)
"""Those of which everything is run that `--quick` runs, with what shows enough among it."""
WHOLE_IN_SHORT = ("wrong_marker_after",)
"""Those that continuous integration tries; the nightly workflow tries all."""


@pytest.fixture(autouse=True)
def _place(
    watched_calls: None, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    callspec = getattr(request.node, "callspec", None)
    name = callspec.params.get("name") if callspec else None
    needs = expected()[name].get("needs") if name else None
    if needs and not has(needs, tmp_path):
        pytest.skip(f"No {needs} here.")
    copied(tmp_path, monkeypatch)


def has(needs: str, folder: Path) -> bool:
    """Whether this machine has a program, or `xattr`: whether files in a folder may have extended attributes."""
    if needs != "xattr":
        return shutil.which(needs) is not None
    try:
        os.setxattr(folder, "user.labkit", b"")
    except OSError:
        return False
    return True


def violated(report: Report) -> set[str]:
    axes = report.summary.axes
    return {axis for axis, outcome in axes.items() if outcome is Outcome.VIOLATED}


def check(name: str, report: Report) -> None:
    """Compares a report with what was expected of the pipeline."""
    print(report.text())
    wanted = expected()[name]
    unknown = {each.id: each.unknown for each in report.summary.unknown()}
    seeing = unknown.pop("seeing", "") or unknown.pop("outside", "")
    assert bool(seeing) == ("seeing" in wanted)
    assert wanted.get("seeing", "") in seeing
    assert unknown == {}
    assert report.summary.guarantee == wanted["guarantee"]
    assert violated(report) - set(wanted.get("sometimes", ())) == set(wanted["axes"])
    assert (report.diagnosis.code if report.diagnosis else "") == wanted["pattern"]
    assert report.summary.coverage.hit == report.summary.coverage.planned


@pytest.mark.parametrize("name", slow_but(FAST, [name for name in expected() if name not in WHOLE], VARIANTS))
def test_a_pipeline_is_what_was_expected_of_it(name: str) -> None:
    check(name, report_on(name, only=expected()[name]["shown_by"]))


TOGETHER = ["wrong_append", "right_one_transaction", "right_lease", "right_derived"]


@pytest.mark.parametrize("name", slow_but(("right_lease", "right_derived"), TOGETHER))
def test_a_second_instance_at_the_same_time_is_a_condition(name: str) -> None:
    """Where the rows themselves say how far the input was read, two instances read the same; a lock keeps one out."""
    report = report_on(name, only=["two_instances"])
    wanted = expected()[name]
    held = wanted.get("two_instances", wanted["guarantee"])
    [result] = [each for each in report.summary.results if each.id == "two_instances"]
    assert report.to_json()["conditions"] == {"two_instances": held}
    assert f"{result.title}: {held}" in flat(report)
    assert report.summary.weakest is None
    assert str(report.claim) == "unknown"  # a condition alone says nothing of the guarantee
    waited = any("it waited for the first one, and was killed" in note for note in result.notes)
    assert waited == (name == "right_one_transaction")


@pytest.mark.slow
def test_a_restart_comes_before_any_reading_wherever_the_reader_changed_files() -> None:
    report = report_on("wrong_journal")
    made = [each for each in report.summary.results if each.id.startswith(UNREAD)]
    assert len(made) == 2
    assert any(each.violated for each in made)
    # More of these runs are possible, and count as missing.
    assert report.summary.coverage.directed > report.summary.coverage.directed_tried
    plain = report_on("right_move").summary.results
    assert not [each for each in plain if each.id.startswith(UNREAD)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["wrong_repaired", "wrong_newest", "wrong_owner", "wrong_started", "wrong_dangling", "wrong_join"]
)
def test_a_whole_test_chooses_the_run_that_shows_the_harm(name: str) -> None:
    """The other tests of these samples name the run, so they do not show that a test makes it by itself."""
    with campaign_on(name) as running:
        running.healthy()
        running.run_all(running.jobs())
        chosen = [*running.second_crashes(every=True), *running.new_states()]
    ids = {job.id for job in chosen}
    assert set(expected()[name]["shown_by"]) <= ids
    # Where a row ends is known only from the bytes of the restart's write.
    assert any(each.endswith("repaired #1, end of a row") for each in ids) == (name == "wrong_repaired")


@pytest.mark.slow
def test_plain_starts_follow_a_recovery_from_two_crashes_that_left_files_of_its_own() -> None:
    [shown_by] = expected()["wrong_careful"]["shown_by"]
    with campaign_on("wrong_careful") as running:
        running.healthy()
        running.run_all(running.jobs())
        assert running.later_starts() == []  # after single crashes, they come earlier in the test
        running.run_all([job for job in running.second_crashes() if job.id in shown_by])
        [job] = running.later_starts()
        [result] = running.run_all([job])
    assert (result.id, result.violated) == (shown_by, ("duplicate",))


@pytest.mark.slow
def test_a_second_crash_also_comes_where_nobody_read_after_the_first() -> None:
    [shown_by] = expected()["wrong_restored"]["shown_by"]
    with campaign_on("wrong_restored") as running:
        running.healthy()
        at = running.points[shown_by.removeprefix(UNREAD).partition(THEN)[0]]
        running.run_all([single_job(at)])
        assert [job.crashes for job in running.second_crashes() if job.id.startswith(UNREAD)] == [(at,)]
        assert running.new_states(UNREAD) == []  # so far, nothing is known of a restart that no reading precedes
        running.run_all([unread_job((at,))])
        found = {job.id: job for job in running.new_states(UNREAD)}
        [result] = running.run_all([found[shown_by]])
    assert result.violated == ("duplicate",)


@pytest.mark.slow
def test_a_restart_that_gets_new_input_is_killed_too_and_a_test_without_that_is_not_complete() -> None:
    [shown_by] = expected()["wrong_joined"]["shown_by"]
    with campaign_on("wrong_joined") as running:
        running.healthy()
        running.jobs()
        assert len(running.grown) > len(running._telling())  # after every crash that leaves other files
        assert running.new_states(GROWN) == []
        at = running.points[shown_by.removeprefix(GROWN).partition(THEN)[0]]
        running.run_all([grown_input_job((at,))])
        found = {job.id: job for job in running.new_states(GROWN)}
        before = running.report().summary.coverage
        [fed] = running.fed.values()
        restart = running.harness.recovery_of(fed)
        # A second crash before the restart's first effect would leave the files as the first crash did.
        assert f"{GROWN}{at.name}{THEN}{restart.effects[0].name}" not in found
        [result] = running.run_all([found[shown_by]])
        coverage = running.report().summary.coverage
        assert shown_by not in {job.id for job in running.new_states(GROWN)}
    assert (before.directed, before.directed_tried) == (len(running.grown) + len(found), 1)
    assert (coverage.directed_tried, coverage.pairs_tried) == (before.directed_tried, 1)
    assert result.violated == ("duplicate",)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("right_thread", 2), ("right_move", 0)])
def test_a_call_is_late_only_if_another_thread_may_make_the_next_one(name: str, most: int) -> None:
    """Three threads write side by side; but a shell waits for each program before it starts the next one."""
    report = report_on(name)
    late = [each for each in report.summary.results if each.id.startswith(LATE)]
    assert len(late) == most
    assert not [each for each in late if each.violated or each.unknown]
    assert all(any("while the call was late" in note for note in each.notes) for each in late)


@pytest.mark.slow
@pytest.mark.parametrize("name", variant_but(WHOLE_IN_SHORT, WHOLE))
def test_a_whole_quick_test_says_the_same(name: str) -> None:
    report = report_on(name)
    check(name, report)
    assert report.summary.coverage.planned >= (12 if name != "right_rewritten" else 6)


@pytest.mark.slow
def test_the_one_part_of_thirty_that_is_wrong_is_found_where_every_place_is_tried() -> None:
    report = report_on("wrong_thirtieth", quick=False, limit=5)
    check("wrong_thirtieth", report)
    assert report.summary.coverage.tried == report.summary.coverage.found == 33


@pytest.mark.slow
def test_a_whole_test_makes_every_directed_pair_and_finds_what_only_two_ordinary_crashes_show() -> None:
    name = "wrong_alternates"
    with campaign_on(name) as running:
        report = running.everything()
        check(name, report)
        tried = {each.id for each in running.results if not each.unknown}
        assert len(running.directed) > QUICK.directed
        assert running.directed <= tried
        assert len(running.pairs) > 3 * len(running.directed)
        assert running.comparison.blurred() == []


@pytest.mark.slow
def test_a_job_with_a_database_is_closed_also_for_restarts_that_no_reading_precedes() -> None:
    """The reader rolls a transaction of SQLite back, so the restarts without a reading find other files."""
    with campaign_on("right_one_transaction") as running:
        report = running.everything()
    coverage = report.summary.coverage
    assert (str(report.claim), coverage.closed, coverage.states_left) == ("exactly-once", True, 0)
    assert any(len(crashes) > 1 for crashes in running.unread)
    running.unread.popitem()
    assert not running.report().summary.coverage.closed


@pytest.mark.slow
def test_a_whole_test_goes_on_until_no_crash_leaves_other_files() -> None:
    with campaign_on("right_in_place") as running:
        report = running.everything()
    coverage = report.summary.coverage
    assert (str(report.claim), coverage.closed, coverage.states_left) == ("exactly-once", True, 0)
    assert coverage.states > coverage.found
    assert report.summary.weakest is not None  # an aborted read, which leaves the guarantee as it is
    assert f" states of files {coverage.of_states} " in flat(report)
    with campaign_on("right_in_place") as running:
        running.most = running.most._replace(states=5)
        report = running.everything()
    assert str(report.claim).startswith("not refuted (13 of 13 points, ")
    assert report.code(Goal.EXACTLY_ONCE) == 2


@pytest.mark.slow
def test_four_crashes_are_tried_where_only_the_fourth_does_harm() -> None:
    """A third older copy in `wrong_backups`, so that three crashes are not enough."""
    job = Path("wrong_backups.py")
    text = job.read_text(encoding="utf-8")
    aside, oldest = "            ASIDE.rename(OLDER)\n", 'Path("store/oldest")'
    more = text.replace(aside, f"            if OLDER.exists():\n                OLDER.rename({oldest})\n{aside}")
    job.write_text(more.replace("or whole(OLDER)", f"or whole(OLDER) or whole({oldest})"), encoding="utf-8")
    report = report_on("wrong_backups", quick=False)
    harmful = report.summary.violating("lost")
    assert harmful
    assert min(name.count(THEN) for name in harmful) == 3


@pytest.mark.slow
def test_a_sync_of_only_is_refused_with_the_place_that_leaves_the_same() -> None:
    with pytest.raises(InvalidInput, match=r"before a sync.* choose 'rename store/part-1 #1'\."):
        report_on("right_synced", power_cut=False, only=["sync store/.part-1 #1"])


@pytest.mark.slow
def test_a_reader_that_fails_until_the_restart_is_an_outage_and_no_loss() -> None:
    report = report_on("right_rewritten", only=["write store/rows.json #1"])
    (note,) = (each for each in report.notes if OUTAGE in each)
    assert "JSONDecodeError" in note
    assert not violated(report)


@pytest.mark.slow
def test_rows_that_disappear_without_a_crash_are_not_judged_for_that() -> None:
    Path("again.py").write_text("for rows in ('1', '1\\n2'):\n    open('out', 'w').write(rows)\n", encoding="utf-8")
    read, reset = "cat out 2>/dev/null || true", "rm -f out"
    report = crash_test_pipeline("python again.py", read_command=read, reset=reset, only=["exit"])
    assert report.axes["aborted_read"] == Outcome.UNKNOWN
    assert REPLACED in report.notes


@pytest.mark.slow
def test_an_answer_that_is_no_json_is_an_outage_too(tmp_path: Path) -> None:
    """The command prints what is there, and labkit cannot read it."""
    read = "cat store/rows.json 2>/dev/null || true"
    Path("half.py").write_text(HALF, encoding="utf-8")
    reset = "rm -rf store; mkdir store"
    (tmp_path / "due.jsonl").write_text('{"n": 1}\n', encoding="utf-8")
    report = crash_test_pipeline(
        "python half.py",
        read_command=read,
        reset=reset,
        expected=str(tmp_path / "due.jsonl"),
        watch=["store"],
        only=["write rows.json #2"],
    )
    assert not violated(report)
    assert report.summary.unknown() == []
    assert any(OUTAGE in each for each in report.notes)


HALF = """
with open("store/rows.json", "wb", buffering=0) as out:
    out.write(b'{"n": ')
    out.write(b"1}\\n")
"""
"""One row in two writes."""


@pytest.mark.slow
def test_a_lease_of_the_killed_instance_is_waited_for_and_named() -> None:
    report = report_on("right_lease", only=["rename store/part-2 #1"])
    assert not violated(report)
    assert any(LEASE in each for each in report.notes)


@pytest.mark.slow
def test_a_command_that_never_ends_is_not_started_again_the_next_day() -> None:
    assert LATER not in chosen("right_endless")[0]
    assert LATER in chosen("right_move")[0]


BUSY = """
import time
asked, quick = 0, {reader}
def {reader}():
    global asked
    asked += 1
    end = time.monotonic() + (0.3 if asked > 9 else 0)
    while time.monotonic() < end:  # a reader that slept might be taken for one that waits for a lock
        pass
    return quick()
"""
"""What is added to a reader's file, so that it is slow as soon as the pipeline runs."""


def chosen(name: str, **more: Any) -> tuple[list[str], frozenset[str], list[str]]:
    """The places of a test, the effects by which rows were seen to change, and what is said of the reader."""
    wanted = pipeline_settings(expected()[name]["command"], **options(name) | more)
    with pipeline_campaign(wanted) as running:
        running.healthy()
        places = [job.id for job in running.jobs()]
        notes = [each for each in running._seen.notes if "the reader" in each]
        return places, running._seen.showing, notes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wrong_rewind", "wrong_manifest"])
def test_what_is_tried_does_not_depend_on_how_quick_the_reader_is(name: str) -> None:
    usual = chosen(name)
    assert usual[1]
    reader = expected()[name]["reader"]
    text = Path("rows.py").read_text(encoding="utf-8") + BUSY.format(reader=reader)
    Path("busy.py").write_text(text, encoding="utf-8")
    assert chosen(name, reader=f"busy.py:{reader}") == usual


@pytest.mark.slow
def test_a_reader_too_slow_to_be_asked_is_said_to_make_the_sample_smaller() -> None:
    text = Path("rows.py").read_text(encoding="utf-8")
    text += BUSY.format(reader="read_all").replace("asked > 9", "True")
    Path("slow.py").write_text(text.replace("0.3", "0.6"), encoding="utf-8")
    places, shown, (said,) = chosen("wrong_append", reader="slow.py:read_all")
    assert (bool(places), shown) == (True, frozenset())
    assert "an answer at 0 of" in said
    assert "tries fewer of the points after them" in said


MAKES = """
import sqlite3
from pathlib import Path
TABLE = "CREATE TABLE IF NOT EXISTS rows (n INTEGER)"

def reset():
    Path("store").mkdir(exist_ok=True)
    Path("store/begun").unlink(missing_ok=True)
    Path("store/rows.db").write_bytes(b"")

def read():
    db = sqlite3.connect("store/rows.db")
    db.execute(TABLE)
    rows = db.execute("SELECT n FROM rows").fetchall()
    db.close()
    return [{"n": n} for (n,) in rows]

if __name__ == "__main__":
    Path("store/begun").touch()
    db = sqlite3.connect("store/rows.db")
    db.execute(TABLE)
    with db:
        db.execute("DELETE FROM rows")
        db.execute("INSERT INTO rows VALUES (1)")
"""
"""A pipeline whose reader also makes the table."""


@pytest.mark.slow
def test_runs_with_a_crash_pass_the_same_points_where_the_reader_makes_the_table() -> None:
    Path("makes.py").write_text(MAKES, encoding="utf-8")
    wanted = pipeline_settings("python makes.py", reader="makes.py:read", watch=["store"])
    with pipeline_campaign(wanted) as running:
        running.healthy()
        with running.harness.run("again", "without readings") as run:
            running.harness.start(run)
        assert [each.name for each in run.last.effects] == [each.name for each in running._seen.effects]
        (note,) = (each for each in running._seen.notes if "the reader writes to" in each)
    assert "rows.db" in note


def test_every_program_has_its_prediction() -> None:
    programs = {path.stem for path in PIPELINES.iterdir() if path.is_file()}
    assert programs - {"rows", "expected", "cells", "README", "engines"} == set(expected())
    for wanted in expected().values():
        assert set(wanted["axes"]) <= set(AXES)
        assert wanted["shown_by"]
