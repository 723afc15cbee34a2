"""The order of the runs of a test, and what becomes of a run that cannot begin. No pipeline is started."""

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import refusal

from labkit.core.errors import InvalidInput, JobFailed, LabError, ServiceUnavailable
from labkit.core.judge import Guarantee
from labkit.core.words import telling_line
from labkit.crashtest.blackbox.campaign import Campaign, FinishedRun
from labkit.crashtest.blackbox.execution import NEVER_REACHED
from labkit.crashtest.blackbox.expectation import expect
from labkit.crashtest.blackbox.healthy import Healthy, _check_started, _made_by_reader
from labkit.crashtest.blackbox.points import EXIT, FIRST, WITHIN, Point
from labkit.crashtest.blackbox.runs import Harness, PipelineRun
from labkit.crashtest.blackbox.settings import pipeline_settings
from labkit.crashtest.blackbox.states import Change, Content
from labkit.crashtest.harness.plain_job import READY
from labkit.crashtest.harness.warm_jobs import WarmJob, WarmJobs
from labkit.crashtest.ledger import Job, silent
from labkit.crashtest.options import Demand
from labkit.crashtest.plugin import CrashTests, _compare_runs
from labkit.crashtest.rows import generate
from labkit.crashtest.sink_variants import SinkVariants
from labkit.crashtest.verdict import Group, Result
from labkit.host.syscalls.calls import WatchedRun
from labkit.host.syscalls.guarding import GuardLate


def campaign(**more: Any) -> Campaign:
    nobody = SimpleNamespace(outside=SimpleNamespace(states={}))
    return Campaign(pipeline_settings("true", read_command="cat", **more), nobody, silent)


def test_pytest_plans_the_runs_of_a_whole_test_and_tries_the_power_cuts_too(request: pytest.FixtureRequest) -> None:
    planned: list[Sequence[Job]] = []
    job, outage = Job("create a #1", "", Group.CRASH), Job("power cut exit", "the power fails", Group.POWER)
    fault = Job("eio at exit", "eio", Group.FAULT)
    running = SimpleNamespace(results=[], jobs=lambda: [job], outages=lambda: [outage], plan=planned.append)
    running.faults = lambda: [fault]
    running.second_crashes = running.rest = running.last_jobs = list
    made = [Result("healthy", "no crash", Group.HEALTHY), Result("exit", "the end", Group.CRASH)]
    tests = CrashTests._tests(request.session, running, made, {}, Demand())
    assert planned == [[job]]
    names = [each.name.removeprefix("crashtest[").removesuffix("]") for each in tests]
    assert names[:-2] == [
        "healthy",
        "exit",
        "seeing",
        "create a #1",
        "second-crashes",
        "eio at exit",
        "other-points",
        "power cut exit",
    ]


def test_the_time_for_the_planned_runs_is_allowed_unless_the_user_gave_some(tmp_path: Path) -> None:
    jobs = [Job(f"{number}", "", Group.CRASH) for number in range(90)]
    budgets = []
    for seconds in (0, 30):
        running = campaign(seconds=seconds)
        run = PipelineRun("healthy", "", tmp_path, seconds=10.0)
        running._healthy = SimpleNamespace(run=run)
        assert running.plan(jobs) > 90
        assert running.allowed(jobs) == jobs
        budgets.append(running.ledger.budget)
    assert budgets[0] > 90 * 10.0
    assert budgets[1] == 30


def test_the_number_of_runs_to_come_is_right_once_the_pairs_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    running = campaign(pairs=1000)
    monkeypatch.setattr(running, "second_crashes", lambda: [Job("a then b", "", Group.PAIR)])
    running.ledger.total = 1017
    for number in range(12):
        running.ledger.begin(Job(f"{number}", "", Group.CONDITION if number else Group.CRASH))
    assert [len(several) for several in running._wanted([])] == [0, 1]
    assert running.ledger.total == 1 + 12 + 1


def test_what_had_ended_when_parallel_runs_were_stopped_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(BaseException):
        pass

    def made(job: Job, _copy: Harness) -> FinishedRun:
        if job.id == "5":
            raise Stop
        is_late = "too busy" if job.id in ("0", "3") else ""  # repeated alone, so the others wait for it
        return FinishedRun(job, PipelineRun(job.id, "", tmp_path), Result(job.id, "", job.group, unknown=is_late))

    running, stopped = campaign(), []
    settings = SimpleNamespace(folder=tmp_path)
    beside = SimpleNamespace(stop=SimpleNamespace(set=lambda: stopped.append(True)))
    running._copies = [SimpleNamespace(settings=settings, beside=beside)]
    monkeypatch.setattr(running, "_finished_run", made)
    with pytest.raises(Stop):
        running.run_all([Job(f"{number}", "", Group.CRASH) for number in range(8)])
    assert [each.id for each in running.results][:3] == ["1", "2", "4"]
    assert running.ledger.planned == len(running.results)
    assert stopped


def test_all_pairs_that_the_user_asks_for_are_tried_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the first sixty points there are more pairs than those of which the first sample was taken."""
    running = campaign(pairs=4)
    jobs = [Job(name, "", Group.PAIR) for name in ("directed", "a", "b", "c", "d", "e")]
    running.directed = frozenset({"directed"})
    running.ledger.results = [Result(name, "", Group.PAIR) for name in ("a", "b")]

    def second_crashes(*, every: bool = False) -> list[Job]:
        return jobs if every else []

    monkeypatch.setattr(running, "second_crashes", second_crashes)
    monkeypatch.setattr(running, "later_starts", list)
    monkeypatch.setattr(running, "_until_closed", lambda **_: [])
    assert [job.id for several in running.rest() for job in several] == ["directed", "c", "d"]
    running.most = running.most._replace(pairs=1)
    assert [job.id for several in running.rest() for job in several] == ["directed"]


@pytest.mark.parametrize(
    ("group", "crashes", "counts_as_tried"),
    [(Group.PAIR, 1, False), (Group.PAIR, 0, True), (Group.CRASH, 0, True)],
    ids=["second point", "first point of a pair", "single point"],
)
def test_only_a_second_crash_that_is_never_reached_counts_as_not_tried(
    tmp_path: Path, group: Group, crashes: int, counts_as_tried: bool
) -> None:
    run = PipelineRun(
        "a then b",
        "",
        tmp_path,
        unknown=f"{NEVER_REACHED}: the command ended",
        crashes=[{"point": "a", "at": 0.0, "killed": [1]}] * crashes,
    )
    result = campaign()._judged(Job("a then b", "", group), run)
    assert result.skipped is not counts_as_tried


def test_pytest_fails_for_a_wrong_run_after_one_that_was_left_out() -> None:
    left_out = Result("a", "a", Group.PAIR, unknown="never reached", skipped=True)
    with pytest.raises(pytest.skip.Exception, match="never reached"):
        _compare_runs(lambda: [left_out], Guarantee.EXACTLY_ONCE, ())
    with pytest.raises(pytest.fail.Exception, match="failed to recover"):
        _compare_runs(
            lambda: [left_out, Result("b", "b", Group.PAIR, stuck="failed to recover")], Guarantee.EXACTLY_ONCE, ()
        )


def harness(tmp_path: Path, begin: Any) -> Harness:
    settings = pipeline_settings("true", read_command="cat", watch=[str(tmp_path)])
    return Harness(settings, SimpleNamespace(begin=begin), tmp_path / "out" / "runs", "mark")


@pytest.mark.parametrize("error", [InvalidInput("server busy"), GuardLate("server busy"), JobFailed("server busy")])
def test_a_run_whose_reset_fails_is_unknown_and_costs_no_other(tmp_path: Path, error: LabError) -> None:
    def fails() -> None:
        raise error

    broken = harness(tmp_path, fails)
    with pytest.raises(type(error), match="server busy"), broken.run("healthy", "no crash"):
        pytest.fail("nothing may start")
    broken.expectation = ()
    with broken.run("x", "x") as run:
        broken.crash(run, Point("x", 1))
    assert run.unknown == "server busy"
    assert (run.starts, run.crashes) == ([], [])


def test_a_job_that_does_not_start_here_is_no_weak_sink(tmp_path: Path) -> None:
    run = PipelineRun("healthy", "no crash", tmp_path, unknown="Spark could not be started for the sink")
    with pytest.raises(ServiceUnavailable, match="could not be started"):
        _check_started(run)


def test_what_labkit_keeps_of_a_reader_is_not_what_the_reader_writes(tmp_path: Path) -> None:
    own = harness(tmp_path, lambda: None)
    own.folder.mkdir(parents=True)
    (own.folder.parent / "read-command.errors").touch()
    assert _made_by_reader(own, {}) == []
    (tmp_path / "rows.db").touch()
    assert "rows.db" in _made_by_reader(own, {})[0]


def test_the_log_of_a_warm_session_may_go_to_another_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    def watch(*_: object, **__: object) -> WatchedRun:
        job.log.write_text("the job's own words")
        return WatchedRun(0, None, None, 0)

    monkeypatch.setattr(os, "link", link)
    job, place = object.__new__(WarmJob), tmp_path / "job-1"
    place.mkdir()
    (place / READY).touch()
    job._place, job.log, job._mark = place, place / "log.txt", "no process has this mark"
    job.ahead = SimpleNamespace(watch=watch, is_alive=False, close=lambda: None)
    jobs = WarmJobs(tmp_path / "job.json", tmp_path / "warm", 2)
    jobs.no_more()
    jobs._waiting.append(job)
    output = tmp_path / "start-1.log"
    output.touch()
    starter = jobs.starter(is_first=True, exits=True)
    starter(["sh", "-c", "run job.json"], folder=tmp_path, environment={}, output=output, decide=None)
    assert output.read_text() == "the job's own words"
    assert not place.exists()
    assert not jobs._waiting, "no session was started that no run needs"


def test_no_session_is_started_ahead_of_need_in_the_last_run() -> None:
    told: list[bool] = []
    last = SinkVariants(None, generate(3), None, None, before_last=lambda: told.append(True))
    last._large = [Point("write a #1", 0), Point("write a #2", 0)]
    runs = last.last_jobs()
    assert [next(runs).id, next(runs).id, *told] == ["large", "large.write a #1"]
    assert [next(runs).id, *told] == ["large.write a #2", True]


def test_a_list_of_the_points_takes_no_option_of_a_whole_test(tmp_path: Path) -> None:
    words = ["crashtest", "--command", "true", "--read-command", "true", "--dry"]
    given = {"--out": "kept", "--junit": "junit.xml", "--only": "exit", "--expect": "not-refuted", "--also": "lost"}
    for option, word in given.items():
        said = refusal(*words, option, word, cwd=tmp_path)
        assert f"--dry only lists crash points, so {option} has no effect" in said
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_only_warned_said_something() -> None:
    assert telling_line("WARNING: low memory\nWARNING: cannot open the database, giving up\n").endswith("giving up")
    assert telling_line("ready\nWARNING: low memory\n") == "ready"
    assert telling_line("\n") == ""


NAMES = ("write rows #1", "write log #1", "commit #1", "write rows #2", "commit #2")


def start(**states: str) -> SimpleNamespace:
    """A start with the content of one file before some calls, named by their place in `NAMES`."""
    content = {NAMES[int(place[1:])]: text for place, text in states.items()}
    files = {
        name: {"rows": Change(None, Content(b"", b"", b"", b"", read=text.encode()))} for name, text in content.items()
    }
    return SimpleNamespace(effects=[SimpleNamespace(name=name) for name in content], states=files)


@pytest.mark.parametrize(
    ("complete", "starts", "was_finished"),
    [
        (start(_1="1", _2="1"), [start(_1="1")], True),
        (start(_1="1", _2="2"), [start(_1="1"), start(_2="1")], False),  # the restart does not count then
        (start(_1="1"), [start(_1="1"), start(_2="1")], False),
        (start(_2="1"), [start(_1="1"), start(_2="1")], False),
        (start(_1="1", _4="1"), [start(_1="1")], True),
        (None, [start(_1="1")], False),
        (None, [start(_1="1"), start(_1="1")], False),  # no restart came to the end of the batch
        (None, [start(_1="1"), start(_2="1")], True),
        (None, [start(_1="1"), start(_2="2")], False),
        (None, [start(_1="1"), start(_1="1"), start(_2="1", _4="2")], True),
        (None, [start(_1="1"), start(_2="2"), start(_2="1")], False),
    ],
)
def test_a_batch_was_finished_if_the_files_were_those_at_its_end(
    complete: SimpleNamespace | None, starts: list[SimpleNamespace], was_finished: bool
) -> None:
    running = campaign()
    exit_point = Point(EXIT, 9)
    seen = complete or starts[0]
    running.points = {EXIT: exit_point}
    running._healthy = SimpleNamespace(effects=seen.effects, doubts=[])
    running.crashed = {(exit_point,): SimpleNamespace(starts=[complete])} if complete else {}

    def batch_end(effects: Iterable[Any]) -> str:
        return next((each.name for each in effects if each.name.startswith("commit")), "")

    running.settings = SimpleNamespace(immaterial=lambda _effects: (), batch_end=batch_end)
    assert running._was_finished(SimpleNamespace(starts=starts), NAMES[1]) is was_finished


def test_the_run_before_a_harmful_cut_is_made_too() -> None:
    """Else nothing shows whether the torn write alone does harm."""
    running = campaign()
    cut, other = f"{WITHIN}write a #1", f"{WITHIN}write b #1"
    names = ["write a #1", cut, f"{cut}{FIRST}", "write b #1", other]
    running.points = {name: Point(name, number, cut=int(WITHIN in name)) for number, name in enumerate(names)}
    running.ledger.results = [Result(name, "", Group.CRASH, stuck="torn") for name in (cut, f"{cut}{FIRST}")]
    running.ledger.results.append(Result(other, "", Group.CRASH))
    assert [job.id for job in running._before_cuts()] == ["write a #1"]
    running.recoveries = lambda: SimpleNamespace(
        pairs=lambda *_: ((), frozenset(), frozenset()), loops=lambda _most: [], ended_otherwise=list
    )
    running._healthy = SimpleNamespace(effects=(), overtakable=(), showing=())
    running.harness.endless, running.harness.logs = False, frozenset()
    running._overtaken = list
    assert [job.id for job in running.second_crashes()] == ["write a #1"]
    assert running.second_crashes(every=True) == []
    running.ledger.results.append(Result("write a #1", "", Group.CRASH))
    assert running._before_cuts() == []


def test_the_report_says_what_a_run_with_a_large_batch_did_not_see(tmp_path: Path) -> None:
    running = campaign()
    outside, kept = SimpleNamespace(states={}, notes=list), SimpleNamespace(notes=list)
    running.harness = SimpleNamespace(outside=outside, logs=frozenset(), leftover_notes=[], lines=kept)
    run = PipelineRun("healthy", "", tmp_path)
    running._healthy = Healthy(run, (), expect([1], [1]), (), frozenset(), False, ())
    running.ledger.results = [Result("large", "a batch of 3000 rows", Group.LARGE, notes=("the reader was slow",))]
    running.ledger.results.append(Result("a", "before a", Group.CRASH, notes=("once more",)))
    assert [each for each in running.report().notes if "slow" in each] == ["a batch of 3000 rows: the reader was slow"]
    assert not any("once more" in each for each in running.report().notes)
