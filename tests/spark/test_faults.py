"""Faults around a run: damaged files, a clock that was set back, other and full disks, a driver that was stopped.

Each ends in the right verdict or in one sentence, and leaves nothing behind.
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import small_disk
from choosing import variant_but
from command import apart
from runners import PATIENCE, marked, running
from waiting import until

from labkit.core.errors import JobFailed, LabError
from labkit.host.processes.events import Begun, Killed, Parked, Proof
from labkit.host.processes.sessions import session_members
from labkit.runs.conclude import conclude
from labkit.runs.conduct import DriverPool, Setup
from labkit.runs.crash import finish
from labkit.runs.evidence import DriverEvents
from labkit.runs.outcome import Outcome
from labkit.runs.prepare import prepare
from labkit.runs.progress import silent
from labkit.runs.run import Run
from labkit.runs.scenario import Scenario, plan

pytestmark = pytest.mark.spark

SECOND_BATCH = {"records_per_batch": 1, "crashes": ["coordinator.after_handles@1"]}
TWO_PHASE = plan(sink="two_phase", **SECOND_BATCH)
APPEND = plan(sink="append", records_per_batch=1, crashes=["sink.after_pre_commit@1"])


def overwrite(name: str, content: str) -> Callable[[Run], None]:
    def damage(run: Run) -> None:
        path = run.folder.path / name
        assert path.exists(), f"{name} is not there to be damaged"
        path.write_text(content)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    return damage


def set_the_clock_back(run: Run) -> None:
    """Everything that the first driver left is a day younger than the second driver's now."""
    tomorrow = time.time() + 86_400
    for batch in (run.folder.checkpoint / "offsets").glob("[0-9]*"):
        version, metadata, *rest = batch.read_text().splitlines()
        later = json.loads(metadata) | {"batchTimestampMs": int(tomorrow * 1000)}
        batch.write_text("\n".join([version, json.dumps(later), *rest]))
        batch.with_name(f".{batch.name}.crc").unlink(missing_ok=True)
    for path in run.folder.path.rglob("*"):
        os.utime(path, (tomorrow, tomorrow))


def nothing(run: Run) -> None:
    """Left as it is."""


@dataclass(frozen=True)
class Fault:
    """What is done to a run between its crash and its next driver, and what must come of it."""

    scenario: Scenario
    strike: Callable[[Run], None]
    gives: str
    """A guarantee, or the sentence that refuses to go on."""


FAULTS = {
    "no fault": Fault(TWO_PHASE, nothing, "exactly-once"),
    "offsets": Fault(
        TWO_PHASE, overwrite("checkpoint/offsets/1", "v1\n{"), "checkpoint/offsets/1: this file is damaged"
    ),
    "an empty offsets": Fault(
        APPEND, overwrite("checkpoint/offsets/1", ""), "checkpoint/offsets/1: this file is damaged"
    ),
    "commits": Fault(
        TWO_PHASE, overwrite("checkpoint/commits/0", "\0\0\0"), "checkpoint/commits/0: this file is damaged"
    ),
    "identity": Fault(TWO_PHASE, overwrite("checkpoint/labkit/query.json", "{"), "query.json: this file is damaged"),
    "a decided handle file": Fault(
        plan(sink="two_phase", records_per_batch=1, crashes=["engine.after_commit_log@1"]),
        overwrite("checkpoint/labkit/handles/1.json", "[{}]"),
        "handles/1.json: this file with the transactions of batch 1",
    ),
    "the clock is set back, two_phase": Fault(TWO_PHASE, set_the_clock_back, "exactly-once"),
    "the clock is set back, append": Fault(APPEND, set_the_clock_back, "at-least-once"),
}


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outcome | LabError]:
    """Every run to its crash; the faults; every run to its end."""
    base = tmp_path_factory.mktemp("faults")
    runs = {name: prepare(fault.scenario, base / name.replace(" ", "-")) for name, fault in FAULTS.items()}
    drivers = DriverPool(base / "scratch", silent, 240.0, Setup())
    drivers.run(list(runs.values()))
    for name, run in runs.items():
        assert (run.error, len(run.crashes)) == (None, 1)
        FAULTS[name].strike(run)
    drivers.run(list(runs.values()))
    return {name: judged(run) for name, run in runs.items()}


def judged(run: Run) -> Outcome | LabError:
    try:
        return conclude(run)
    except LabError as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_in_the_right_verdict_or_in_one_sentence(name: str, struck: Mapping[str, Outcome | LabError]):
    outcome, gives = struck[name], FAULTS[name].gives
    if isinstance(outcome, Outcome):
        assert outcome.verdict.guarantee == gives
        assert dict(outcome.verdict.final) == {"hello": 2, "world": 1}
    else:
        assert gives in str(outcome)
        assert "\n" not in str(outcome)
        assert "restore" in str(outcome)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"point": "sink.mid_write"}'])
def test_damaged_evidence_proves_nothing(content: str, tmp_path: Path):
    run = prepare(plan(crashes=["sink.mid_write@0"]), tmp_path / "run")
    noted = DriverEvents([run], silent)
    run.folder.reached(1).write_text(content)
    noted.note(Begun(run.name))
    noted.note(Parked(run.name))
    noted.note(Killed(Proof(session=1, signal=9, killed=[1], left=[], begun=time.time())))
    noted.conclude()
    assert isinstance(run.error, JobFailed)
    assert "reached-1.json: the evidence is damaged (" in str(run.error)


@pytest.fixture
def other_disk() -> Iterator[Path]:
    """A folder on another disk than the tests' own."""
    shared = Path("/dev/shm")
    home = shared if shared.is_dir() else Path.home()
    with tempfile.TemporaryDirectory(dir=home, prefix="labkit-test-") as name:
        yield Path(name)


@pytest.mark.variant
@pytest.mark.slow
def test_the_checkpoint_may_lie_on_another_disk(tmp_path: Path, other_disk: Path):
    run = prepare(plan(sink="two_phase", crashes=["sink.after_pre_commit@0"]), tmp_path / "run")
    run.folder.checkpoint.symlink_to(other_disk, target_is_directory=True)
    outcome = finish(run)
    assert outcome.verdict.guarantee == "exactly-once"
    assert (other_disk / "commits" / "0").exists()


SMALL = 300_000
"""Bytes: less than the many words below take in a store or in a checkpoint."""


@dataclass(frozen=True)
class Cramped:
    """A place where little can be written: a small file system, or else a limit on the size of every file."""

    folder: Path
    limit: int | None

    def apply(self) -> None:
        """In the child, before it runs."""
        if self.limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


@pytest.fixture
def cramped(tmp_path: Path) -> Iterator[Cramped]:
    folder = tmp_path / "small"
    if not small_disk.mount(folder, SMALL / 2**20):
        yield Cramped(folder, SMALL)
        return
    yield Cramped(folder, None)
    small_disk.unmount(folder)


def many_words(path: Path) -> Path:
    path.write_text("".join(f"word{number}\n" for number in range(30_000)), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("part", variant_but(["store"], ["store", "checkpoint"]))
def test_a_full_disk_of_one_part_is_said_in_one_sentence(part: str, tmp_path: Path, cramped: Cramped):
    text = many_words(tmp_path / "words.txt")
    run = prepare(plan(job="totals", sink="append", input=text, records_per_batch=30_000), tmp_path / "run")
    (run.folder.path / part).symlink_to(cramped.folder, target_is_directory=True)
    done = subprocess.run(
        [sys.executable, "-m", "labkit", "run", "--resume", str(run.folder.path), "--json"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        preexec_fn=cramped.apply,
    )
    words = done.stderr.strip().splitlines()
    assert (done.returncode in (1, 64), done.stdout, len(words)) == (True, "", 1), done.stderr
    assert "the disk is full" in words[0] or "size limit" in words[0] or "File too large" in words[0]
    assert not (run.folder.path / "scratch").exists()


def drivers(run: Path) -> list[int]:
    """Everything in the sessions of the drivers that hold or held the run's lock."""
    lock = run / "checkpoint" / "labkit" / "driver.lock"
    try:
        return session_members(int(json.loads(lock.read_text())["session"]))
    except (OSError, ValueError, KeyError):
        return []


def tell_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def finished(folder: Path) -> dict:
    code, out, words = apart("run", "--resume", str(folder), "--json")
    return {"code": code, "words": words} | (json.loads(out) if out else {})


@pytest.mark.variant
@pytest.mark.slow
def test_a_driver_that_is_stopped_for_too_long_is_killed_and_never_comes_back(tmp_path: Path):
    folder = tmp_path / "run"
    with running(folder, "--patience", "30") as (process, mark):
        until((folder / "checkpoint" / "offsets" / "0").exists, "the first batch")
        stopped = drivers(folder)
        tell_all(stopped, signal.SIGSTOP)
        _, words = process.communicate(timeout=PATIENCE)
        assert (process.returncode, len(words.decode().strip().splitlines())) == (1, 1), words
        assert "reported nothing for 30 s" in words.decode()
        until(lambda: not marked(mark), "every process of the run to be gone")
        tell_all(stopped, signal.SIGCONT)
        assert session_members(stopped[0]) == []
    again = finished(folder)
    assert (again["guarantee"], again["final"]) == ("exactly-once", {"hello": 2, "world": 1})


@pytest.mark.slow
def test_while_a_stopped_driver_may_come_back_no_other_takes_its_checkpoint(tmp_path: Path):
    """Runner dead, supervisor and driver stopped: the zombie holds its lock, and when it goes on it only dies."""
    folder = tmp_path / "run"
    with running(folder) as (process, mark):
        until((folder / "checkpoint" / "offsets" / "0").exists, "the first batch")
        zombies = [int(line.split()[0]) for line in marked(mark)]
        tell_all([pid for pid in zombies if pid != process.pid], signal.SIGSTOP)
        process.kill()
        process.wait()
        refused = finished(folder)
        assert refused["code"] == 64
        assert "is still running this query; stop it first" in refused["words"]
        tell_all(zombies, signal.SIGCONT)
        until(lambda: not marked(mark), "the zombie to be gone")
    again = finished(folder)
    assert (again["guarantee"], again["final"]) == ("exactly-once", {"hello": 2, "world": 1})


KILLS = 10
SIDE_BY_SIDE = 4
LONGEST_LIFE = 20.0
"""Seconds: a little more than a whole run takes, so that some moments lie behind its end."""


@pytest.mark.slow
def test_nothing_is_left_of_runners_that_are_killed_at_random_moments(tmp_path: Path):
    chance = random.Random(20_261_121)
    moments = [chance.uniform(0, LONGEST_LIFE * SIDE_BY_SIDE / 2) for _ in range(KILLS)]

    def strike(number: int) -> bool:
        folder = tmp_path / str(number)
        with running(folder) as (process, mark):
            threading.Event().wait(moments[number])
            alive = process.poll() is None
            process.kill()
            process.wait()
            until(lambda: not marked(mark), f"the processes of runner {number} to be gone")
            until(lambda: not any((folder / "scratch").glob("driver-*/")), f"the temporary files of runner {number}")
            return alive

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        killed = sum(pool.map(strike, range(KILLS)))
    assert killed > KILLS // 2, "too many runners were over before their moment"
