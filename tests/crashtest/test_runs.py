"""A crash counts with its evidence only: the point, signal 9, an empty session, the engine's logs."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.core.judge import Guarantee
from labkit.crashtest.campaign import Campaign, Job, silent
from labkit.crashtest.harness.runs import Trial, Workshop, follow
from labkit.crashtest.harness.subject import Door, Subject
from labkit.crashtest.instrument.effects import Effect, Kind, Point, Side
from labkit.crashtest.rows import generate
from labkit.crashtest.settings import Settings
from labkit.crashtest.verdict import Group

POINT = Point(1, "call", 2, Kind.COMMIT, Side.AFTER, 12)
PROOF = {"signal": 9, "left": [], "session": 77, "killed": [77, 78], "begun": 1.0}


class Looks:
    """Stands where the watcher stands, and keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[int, ...]]] = []

    def look(self, moment: str, unfinished: tuple[int, ...]) -> None:
        self.told.append((moment, unfinished))


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    subject = Subject(str(tmp_path / "sink.py"), "sink")
    nobody: Any = SimpleNamespace(resets=True)
    return Workshop(Settings(subject, subject), Door.BATCH, nobody, nobody, tmp_path)


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A crash at the point, with all its evidence."""
    looks: Any = Looks()
    made = Trial("b1.call.2.after", "", tmp_path, generate(3), looks)
    for name in ("offsets/0", "offsets/1", "commits/0"):
        path = made.checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1\n{}\n")
    testify(tmp_path)
    return made


def testify(folder: Path, **other: Any) -> None:
    seen = {"point": POINT.id, "kind": "commit", "pid": 78, "session": 77, **other}
    (folder / "reached-1.json").write_text(json.dumps(seen))


testify.__test__ = False  # type: ignore[attr-defined]


def test_a_crash_with_all_its_evidence_counts(workshop: Workshop, trial: Trial) -> None:
    workshop.note(trial, 1, POINT, PROOF)
    assert [crash["point"] for crash in trial.crashes] == [POINT.id]
    assert trial.watcher.told == [("crash 1", ())]


def test_the_reader_is_told_that_the_batch_is_unfinished(
    workshop: Workshop, trial: Trial
) -> None:
    workshop.healthy_log = [
        Effect(1, "call", number, Kind.COMMIT, "t", 12) for number in (2, 3)
    ]
    workshop.note(trial, 1, POINT, PROOF)
    assert trial.watcher.told == [("crash 1", (1,))]


@pytest.mark.parametrize(
    "proof",
    [{"signal": 15}, {"signal": 0}, {"left": [79]}, {"session": 80}],
    ids=lambda proof: next(iter(proof)),
)
def test_a_driver_that_did_not_die_by_sigkill_alone_proves_nothing(
    workshop: Workshop, trial: Trial, proof: dict
) -> None:
    with pytest.raises(JobFailed, match="did not die at the point by SIGKILL alone"):
        workshop.note(trial, 1, POINT, {**PROOF, **proof})
    assert trial.crashes == []


def test_a_point_without_evidence_is_not_hit(workshop: Workshop, trial: Trial) -> None:
    (trial.folder / "reached-1.json").unlink()
    with pytest.raises(JobFailed, match="no evidence"):
        workshop.note(trial, 1, POINT, PROOF)
    assert trial.crashes == []


@pytest.mark.parametrize("other", [{"point": "b0.call.2.after"}, {"kind": "write"}])
def test_evidence_of_another_point_is_none(
    workshop: Workshop, trial: Trial, other: dict
) -> None:
    testify(trial.folder, **other)
    with pytest.raises(JobFailed, match="the evidence is of"):
        workshop.note(trial, 1, POINT, PROOF)


@pytest.mark.parametrize(
    ("log", "change"), [("offsets/1", "gone"), ("commits/1", "there")]
)
def test_the_engine_s_logs_must_say_what_the_point_says(
    workshop: Workshop, trial: Trial, log: str, change: str
) -> None:
    path = trial.checkpoint / log
    if change == "gone":
        path.unlink()
    else:
        path.write_text("v1\n{}\n")
    with pytest.raises(JobFailed, match="not those of this point"):
        workshop.note(trial, 1, POINT, PROOF)


def test_behind_commits_n_it_must_be_there(workshop: Workshop, trial: Trial) -> None:
    point = Point(1, "engine", 0, Kind.COMMITS, Side.AFTER)
    testify(trial.folder, point=point.id, kind="commits/N")
    with pytest.raises(JobFailed, match="not those of this point"):
        workshop.note(trial, 1, point, PROOF)


def test_what_does_not_fit_into_the_time_is_unknown(tmp_path: Path) -> None:
    nobody: Any = None
    subject = Subject(str(tmp_path / "sink.py"), "sink")
    running = Campaign(
        Settings(subject, subject, seconds=1e-9), Door.BATCH, nobody, tmp_path, silent
    )
    assert running.run(
        Job(POINT.id, str(POINT), Group.CRASH, (POINT,))
    ).unknown.startswith("not run")
    assert running.results[0].guarantee is Guarantee.UNKNOWN


def test_too_few_rows_are_unknown(
    workshop: Workshop, trial: Trial, tmp_path: Path
) -> None:
    running = Campaign(workshop.settings, Door.BATCH, workshop, tmp_path, silent)
    trial.rows = generate(3, per_batch=2)
    trial.watcher.samples = []
    assert "too few rows" in running._judged(Job("x", "x", Group.CRASH), trial).unknown


def test_what_a_driver_says_is_followed_to_its_end() -> None:
    failed = {"event": "failed", "cell": "a", "because": "no", "code": 1}
    assert (
        follow(
            iter(
                [
                    {"event": "begun"},
                    {"event": "ended"},
                    {"event": "rested", "left": []},
                ]
            )
        )["event"]
        == "ended"
    )
    assert follow(iter([failed, {"event": "rested", "left": ["x"]}])) == {
        **failed,
        "left": ["x"],
    }
    assert follow(iter([{"event": "killed", **PROOF}])) == {"event": "killed", **PROOF}
    with pytest.raises(JobFailed, match="without a word"):
        follow(iter([]))
    with pytest.raises(ServiceUnavailable, match="no Java"):
        follow(
            iter([{"event": "failed", "cell": None, "because": "no Java", "code": 69}])
        )
