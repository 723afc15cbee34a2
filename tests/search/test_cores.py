"""A search in several processes: what one process finds, and nothing left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from waiting import until

from labkit.core.errors import InvalidInput, JobFailed
from labkit.search.cores import WIDE, on_cores
from labkit.sim import MODELS
from labkit.sim.explore import Exploration, Progress, Search, explore
from labkit.sim.shard import Batch, Shard, ranks
from labkit.sim.trace import make

SEARCHES = {
    "2pc": ("two_phase_commit", {}),
    "2pc, blocked": ("two_phase_commit", {"coordinator_returns": False}),
    "2pc, heuristic": ("two_phase_commit", {"broken": "heuristic", "crashes": 2}),
    "2pc, early": ("two_phase_commit", {"broken": "early"}),
    "textbook": ("two_phase_commit", {"textbook": True, "participants": 4}),
    "pipeline, append": ("pipeline", {"strategy": "append"}),
    "pipeline, wal": ("pipeline", {"strategy": "wal", "crashes": 2}),
    "barriers": ("barriers", {"counts": 1}),
    "delivery": ("delivery", {}),
    "snapshot": ("snapshot", {}),
    "changelog": ("changelog", {}),
    "kafka_log": ("kafka_log", {}),
    "orders": ("orders", {}),
}


def on(
    cores: int, model: str, given: dict[str, object], wide: int = 1, **limits
) -> Exploration:
    """A search in so many processes, which share it from the beginning unless it is told otherwise."""
    with on_cores(make(model, given), cores, wide) as searchers:
        return searchers.explore(**limits)


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    # Not their children: a server that other tests keep in this process begins and ends such at any moment.
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) <= before


@pytest.mark.parametrize("name", SEARCHES)
def test_searchers_find_what_one_finds(name: str):
    model, given = SEARCHES[name]
    alone = explore(make(model, given), max_states=6_000)
    for cores, wide in ((1, 1), (2, 1), (2, 40), (3, 1)):
        assert on(cores, model, given, wide, max_states=6_000) == alone


def test_every_model_is_searched_on_several_cores():
    assert {model for model, _ in SEARCHES.values()} == set(MODELS)


def test_a_search_without_a_wide_level_has_no_searchers():
    model = make("two_phase_commit", {"participants": 1})
    with on_cores(model, 2) as searchers:
        assert searchers.processes == []
        assert searchers.explore() == explore(model)
        assert searchers.explore(max_states=5) == explore(model, max_states=5)


@pytest.mark.parametrize("more", [-300, -1, 0, 1, 800])
def test_a_limit_counts_before_the_search_is_shared_and_behind(more: int):
    model, given = SEARCHES["2pc, early"]
    begun = Search(make(model, given))
    while len(begun.level) < WIDE:
        begun.advance()
    most = len(begun.parents) + more
    alone = explore(make(model, given), max_states=most)
    assert alone.stopped
    assert on(2, model, given, WIDE, max_states=most) == alone


def test_a_value_that_is_new_gets_the_same_code_from_every_searcher():
    """Both tell states that have no number yet, in the same level; afterwards each reads the other's numbers."""
    shards = [Shard(Search(make("barriers", {"counts": 1})), me, 2) for me in (0, 1)]
    none = Batch([], [], [])
    orders = [shard.admit([none, none], []) for shard in shards]
    told = [0, 0]
    while any(orders):
        taken = [
            shard.take(own, ranks(orders, me), lambda: False)
            for me, (shard, own) in enumerate(zip(shards, orders, strict=True))
        ]
        strange = [each.strange for each in taken]
        told = [
            many + len(each.orders) for many, each in zip(told, strange, strict=True)
        ]
        orders = [
            shard.admit(strange, [each.theirs[me] for each in taken])
            for me, shard in enumerate(shards)
        ]
    assert min(told) > 10
    one, other = (shard.packer for shard in shards)
    assert one.news([0] * one.width) == other.news([0] * one.width)
    numbers = [set(shard.parents) for shard in shards]
    initial = one.pack(make("barriers", {"counts": 1}).initial())
    assert numbers[0] & numbers[1] == {initial}


@pytest.mark.parametrize("cores", [1, 3, 5])
def test_any_number_of_searchers_finds_the_same(cores: int):
    model, given = SEARCHES["2pc, heuristic"]
    alone = explore(make(model, given))
    assert alone.violations
    assert on(cores, model, given) == alone


@pytest.mark.parametrize("most", [1, 2, 17, 500, 719, 720, 721])
def test_a_limit_cuts_a_level_where_one_searcher_does(most: int):
    model, given = SEARCHES["2pc, early"]
    alone = explore(make(model, given), max_states=most)
    assert on(2, model, given, max_states=most) == alone


@pytest.mark.parametrize("most", [848, 878, 887, 888, 889])
def test_an_end_behind_the_cut_was_not_seen(most: int):
    """With 888 states the first end is met that breaks a claim; the others are in the level that is cut."""
    model, given = SEARCHES["2pc, blocked"]
    alone = explore(make(model, given), max_states=most)
    assert bool(alone.violations) == (most >= 888)
    assert on(2, model, given, max_states=most) == alone


def test_a_search_that_is_told_to_stop_claims_what_it_saw():
    asked: list[Progress] = []

    def twice(progress: Progress) -> bool:
        asked.append(progress)
        return len(asked) < 40

    found = on(2, "two_phase_commit", {"participants": 4}, keep_going=twice)
    assert (found.exhausted, found.stopped) == (False, "it was told to stop")
    assert found.unique_states >= asked[-1].unique > 1
    assert found.violations == ()


def explore_with_a_death(at_depth: int) -> Exploration:
    """A search of which one searcher is killed on the way."""
    with on_cores(make("two_phase_commit", {"participants": 4}), 2) as searchers:
        victim = searchers.processes[1].pid
        assert victim is not None

        def kill(progress: Progress) -> bool:
            if progress.depth == at_depth:
                os.kill(victim, signal.SIGKILL)
            return True

        return searchers.explore(keep_going=kill)


def test_a_searcher_that_is_killed_ends_the_search_with_one_sentence():
    with pytest.raises(JobFailed, match=r"has ended with signal 9, and its states"):
        explore_with_a_death(at_depth=5)


def test_an_interrupt_leaves_no_searcher():
    def interrupt(progress: Progress) -> bool:
        if progress.depth == 5:
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        on(2, "two_phase_commit", {"participants": 4}, keep_going=interrupt)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_searchers_end_with_whoever_asked(sent: signal.Signals):
    line = ["explore", "two_phase_commit", "--set", "participants=6", "--cores", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "labkit", *line],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as asked:
        process = psutil.Process(asked.pid)
        until(lambda: len(process.children()) == 2, "two searchers")
        searchers = process.children()
        asked.send_signal(sent)
        assert asked.wait(60) != 0
    _, alive = psutil.wait_procs(searchers, timeout=60)
    assert alive == []


def test_too_many_searchers_are_refused():
    with pytest.raises(InvalidInput, match=r"--cores 65: choose 1 to 64"):
        on(65, "two_phase_commit", {})
