"""A search as Spark's tasks: the counts of one core, shortest traces, and an executor's death that costs nothing."""

import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from waiting import until

from labkit.core.errors import InvalidInput
from labkit.host.durable import own_folder
from labkit.search.on_spark import PREFIX, explore_on_spark
from labkit.sim.explore import Exploration, Progress, explore, violations
from labkit.sim.trace import make, replay


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


def assert_same(found: Exploration, alone: Exploration) -> None:
    """The counts are those of one core, and each trace is as short and shows what it claims to show."""
    for name in ("unique_states", "generated_states", "depth", "never_reached"):
        assert getattr(found, name) == getattr(alone, name)
    assert {each.property: len(each.trace.actions) for each in found.violations} == {
        each.property: len(each.trace.actions) for each in alone.violations
    }
    for each in found.violations:
        assert each.property in {one.property for one in violations(replay(each.trace))}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "given"),
    [
        ("two_phase_commit", {"broken": "early"}),
        ("barriers", {"counts": 1, "words": "hello-world"}),
    ],
)
def test_spark_counts_what_one_core_counts(model: str, given: dict[str, object]):
    alone = explore(make(model, given))
    assert alone.exhausted
    assert_same(explore_on_spark(make(model, given), "local[2]"), alone)


def is_executor(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):  # it may have ended meanwhile
        return "CoarseGrained" in " ".join(process.cmdline())
    return False


@pytest.mark.spark
@pytest.mark.slow
def test_an_executor_that_is_killed_costs_no_state():
    alone = explore(make("two_phase_commit", {"broken": "heuristic"}))
    killed: list[int] = []

    def kill(progress: Progress) -> bool:
        if progress.depth == 8:
            executors = list(
                filter(is_executor, psutil.Process().children(recursive=True))
            )
            killed.append(executors[0].pid)
            # While the next level's tasks run, and not between two levels.
            threading.Timer(0.3, executors[0].kill).start()
        return True

    found = explore_on_spark(
        make("two_phase_commit", {"broken": "heuristic"}),
        "local-cluster[2,1,512]",
        keep_going=kill,
    )
    assert len(killed) == 1
    until(lambda: not psutil.pid_exists(killed[0]), "the executor's end", seconds=30)
    assert_same(found, alone)


def test_a_master_that_is_none_is_refused_before_anything_starts():
    with pytest.raises(InvalidInput, match=r"--master spork: write local"):
        explore_on_spark(make("two_phase_commit", {}), "spork")


def test_the_folder_of_a_killed_search_goes_and_that_of_a_living_one_stays(
    tmp_path: Path,
) -> None:
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()
    (left / "codes-0").write_text("x")
    with own_folder(tmp_path, PREFIX) as first:
        assert not left.exists()
        with own_folder(tmp_path, PREFIX) as second:
            assert first.is_dir()
        assert not second.exists()
    assert list(tmp_path.iterdir()) == []
