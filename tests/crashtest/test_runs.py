"""A crash counts with its evidence only: the point, signal 9, an empty session, the engine's logs."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.core.judge import Guarantee
from labkit.crashtest.campaign import Campaign
from labkit.crashtest.harness import drivers
from labkit.crashtest.harness.drivers import BYTES, DriverPool, at_once, last_words
from labkit.crashtest.harness.outcomes import Finished, follow
from labkit.crashtest.harness.runs import Harness, Run
from labkit.crashtest.instrument.effects import RECOVER, Effect, Kind, Point, Side
from labkit.crashtest.jobs import Job
from labkit.crashtest.ledger import Ledger, silent
from labkit.crashtest.rows import generate
from labkit.crashtest.settings import Settings
from labkit.crashtest.subject import Adapter, Subject
from labkit.crashtest.variants import both
from labkit.crashtest.verdict import Group, Result
from labkit.host.processes.events import (
    AnyEvent,
    Begun,
    Died,
    DriverFailed,
    Ended,
    Ending,
    Failed,
    Idle,
    Killed,
    Proof,
    Unwanted,
)

POINT = Point(1, "call", 2, Kind.COMMIT, Side.AFTER, 12)
PROOF = Proof(session=77, signal=9, killed=[77, 78], left=[], begun=1.0)


class Looks:
    """Stands where the watcher stands, and keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[int, ...]]] = []

    def look(self, moment: str, unfinished: tuple[int, ...]) -> None:
        self.told.append((moment, unfinished))


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    subject = Subject(str(tmp_path / "sink.py"), "sink")
    nobody: Any = SimpleNamespace(resets=True)
    return Harness(Settings(sink=subject, reader=subject), Adapter.BATCH, nobody, nobody, tmp_path)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A crash at the point, with all its evidence."""
    looks: Any = Looks()
    made = Run("b1.call.2.after", "", tmp_path, generate(3), looks)
    for name in ("offsets/0", "offsets/1", "commits/0"):
        path = made.checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1\n{}\n")
    leave_evidence(tmp_path)
    return made


def leave_evidence(folder: Path, **other: Any) -> None:
    seen = {"point": POINT.id, "kind": "commit", "pid": 78, "session": 77, **other}
    (folder / "reached-1.json").write_text(json.dumps(seen))


leave_evidence.__test__ = False  # type: ignore[attr-defined]  # any function may carry a mark


def test_a_crash_with_all_its_evidence_counts(harness: Harness, run: Run) -> None:
    harness.record_crash(run, 1, POINT, Killed(PROOF))
    assert [crash["point"] for crash in run.crashes] == [POINT.id]
    assert run.watcher.told == [("crash 1", ())]


def test_the_reader_is_told_that_the_batch_is_unfinished(harness: Harness, run: Run) -> None:
    harness.healthy_log = [Effect(1, "call", number, Kind.COMMIT, "t", 12) for number in (2, 3)]
    harness.record_crash(run, 1, POINT, Killed(PROOF))
    assert run.watcher.told == [("crash 1", (1,))]


@pytest.mark.parametrize(
    "proof",
    [
        Killed(replace(PROOF, signal=15)),
        Killed(replace(PROOF, signal=0)),
        Killed(replace(PROOF, left=[79])),
        Died(PROOF),
        Unwanted(PROOF),
    ],
    ids=str,
)
def test_a_driver_that_did_not_die_by_sigkill_alone_proves_nothing(harness: Harness, run: Run, proof: Ending) -> None:
    with pytest.raises(JobFailed, match="did not die by SIGKILL alone"):
        harness.record_crash(run, 1, POINT, proof)
    assert run.crashes == []


@pytest.mark.parametrize("other", [replace(PROOF, session=80), replace(PROOF, killed=[77])], ids=str)
def test_whoever_reached_the_point_must_be_among_the_killed(harness: Harness, run: Run, other: Proof) -> None:
    with pytest.raises(JobFailed, match=r"78 that reached .* not among the killed"):
        harness.record_crash(run, 1, POINT, Killed(other))
    assert run.crashes == []


def test_a_point_without_evidence_is_not_hit(harness: Harness, run: Run) -> None:
    (run.folder / "reached-1.json").unlink()
    with pytest.raises(JobFailed, match="no evidence"):
        harness.record_crash(run, 1, POINT, Killed(PROOF))
    assert run.crashes == []


@pytest.mark.parametrize("other", [{"point": "b0.call.2.after"}, {"kind": "write"}])
def test_evidence_of_another_point_is_none(harness: Harness, run: Run, other: dict) -> None:
    leave_evidence(run.folder, **other)
    with pytest.raises(JobFailed, match="the evidence names"):
        harness.record_crash(run, 1, POINT, Killed(PROOF))


@pytest.mark.parametrize(("log", "change"), [("offsets/1", "gone"), ("commits/1", "there")])
def test_the_engine_s_logs_must_say_what_the_point_says(harness: Harness, run: Run, log: str, change: str) -> None:
    path = run.checkpoint / log
    if change == "gone":
        path.unlink()
    else:
        path.write_text("v1\n{}\n")
    state = "missing" if change == "gone" else "there"
    with pytest.raises(JobFailed, match=f"but {log} is {state}"):
        harness.record_crash(run, 1, POINT, Killed(PROOF))


def test_behind_commits_n_it_must_be_there(harness: Harness, run: Run) -> None:
    point = Point(1, "engine", 0, Kind.COMMITS, Side.AFTER)
    leave_evidence(run.folder, point=point.id, kind="commits/N")
    with pytest.raises(JobFailed, match="commits/1 is missing"):
        harness.record_crash(run, 1, point, Killed(PROOF))


def test_what_does_not_fit_into_the_time_is_unknown(tmp_path: Path) -> None:
    nobody: Any = None
    subject = Subject(str(tmp_path / "sink.py"), "sink")
    running = Campaign(Settings(sink=subject, reader=subject, seconds=1e-9), Adapter.BATCH, nobody, tmp_path, silent)
    assert running.run(Job(POINT.id, str(POINT), Group.CRASH, (POINT,))).unknown.startswith(
        "not run: 0 s were over (--seconds allows more)"
    )
    assert running.results[0].guarantee is Guarantee.UNKNOWN


def test_progress_says_how_many_runs_there_are_and_how_long_they_take() -> None:
    ledger = Ledger(170.0, silent)
    ledger.total = 16
    ledger.results += [Result(f"r{number}", "a run", Group.CRASH, seconds=2.0) for number in range(6)]
    ledger.results.append(Result("seeing", "", Group.SEEING, unknown="x"))
    job = Job("next", "", Group.CRASH)
    assert ledger.progress(job) == "run 7 of 16, about 20 s left"


class Warm:
    """Stands where a driver stands, and is warm at once."""

    def __init__(self, *_arguments: object, **_named: object) -> None: ...

    def await_ready(self) -> None: ...

    def close(self) -> list[int]:
        return []


@pytest.mark.parametrize(("wanted", "started"), [(None, 3 + 2), (3, 3), (2, 3), (4, 4)])
def test_no_driver_gets_warm_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int | None, started: int
) -> None:
    """Three drivers are taken; where nobody said how many will be, two more wait in the end."""
    monkeypatch.setattr(drivers, "Driver", Warm)
    monkeypatch.setattr(drivers, "check_memory", lambda _count: None)
    nobody: Any = None
    pool = DriverPool(nobody, tmp_path, project="", mark="m")
    pool._most = 2
    pool.wanted = wanted
    for _ in range(3):
        pool.take()
    assert pool._count == started
    pool.close()


def test_no_large_batch_is_made_of_the_user_s_own_rows(tmp_path: Path) -> None:
    nobody: Any = None
    subject = Subject(str(tmp_path / "sink.py"), "sink")
    wanted = Settings(sink=subject, reader=subject, rows=tmp_path / "rows.jsonl")
    running = Campaign(wanted, Adapter.BATCH, nobody, tmp_path, silent)
    assert list(running.last_jobs()) == []


def test_no_run_uses_the_ids_of_another_where_nothing_empties_the_store(tmp_path: Path) -> None:
    subject = Subject(str(tmp_path / "sink.py"), "sink")
    nobody: Any = SimpleNamespace(resets=False, read=list)
    harness = Harness(Settings(subject, subject), Adapter.BATCH, nobody, nobody, tmp_path)
    dealt: list[int] = []
    for number, rows in enumerate((None, lambda: both(harness), None, harness.large_rows, None)):
        with harness.run(f"run-{number}", "", rows and rows()) as run:
            dealt += [row["id"] for batch in run.rows.batches for row in batch.rows]
    assert len(set(dealt)) == len(dealt) > 3000


def test_thelast_words_of_a_driver_are_told(tmp_path: Path) -> None:
    log = tmp_path / "driver-1.log"
    assert "its log is empty" in last_words(log)
    log.write_text("begin\n    raise ValueError\nFatal Python error: out of fuel\nend\n\n")
    assert last_words(log) == (
        'its log says "Fatal Python error: out of fuel" (--out DIR keeps all of it, in drivers/driver-1.log).'
    )
    log.write_text("begin\n  end\n")
    assert 'its log says "end"' in last_words(log)


def test_too_few_rows_are_unknown(harness: Harness, run: Run, tmp_path: Path) -> None:
    running = Campaign(harness.settings, Adapter.BATCH, harness, tmp_path, silent)
    run.rows = generate(3, per_batch=2)
    run.watcher.samples = []
    assert "too few rows" in running._judged(Job("x", "x", Group.CRASH), run).unknown


def test_a_recovery_leaves_the_engine_s_logs_as_they_were(harness: Harness, run: Run) -> None:
    harness.record_crash(run, 1, POINT, Killed(PROOF))
    point = Point(1, RECOVER, 0, Kind.BEGIN, Side.AFTER)
    seen = {"point": point.id, "kind": point.kind, "pid": 78, "session": 77}
    (run.folder / "reached-2.json").write_text(json.dumps(seen))
    (run.folder / "reached-3.json").write_text(json.dumps(seen))
    harness.record_crash(run, 2, point, Killed(PROOF))
    (run.checkpoint / "commits" / "1").touch()
    with pytest.raises(JobFailed, match="recovery changed the engine's logs"):
        harness.record_crash(run, 3, point, Killed(PROOF))
    assert len(run.crashes) == 2


def test_what_a_driver_says_is_followed_to_its_end() -> None:
    failed, killed = Failed("a", "no", 1), Killed(PROOF)
    ended: list[AnyEvent] = [Begun("a"), Ended("a"), Idle([])]
    assert follow(iter(ended)) == Finished([])
    assert follow(iter([failed, Idle(["x"])])) == Finished(["x"], "no")
    assert follow(iter([killed])) is killed
    with pytest.raises(JobFailed, match="without reporting"):
        follow(iter([]))
    with pytest.raises(ServiceUnavailable, match="no Java"):
        follow(iter([DriverFailed("no Java", 69)]))


@pytest.mark.parametrize(
    ("memory", "cores", "most"), [(20, 2, 2), (20, 8, 8), (20, 64, 17), (5, 2, 2), (4, 2, 1), (1, 8, 1), (20, 1, 1)]
)
def test_drivers_get_warm_on_all_cores_for_which_there_is_memory(memory: int, cores: int, most: int) -> None:
    assert at_once(memory * BYTES, cores) == most
