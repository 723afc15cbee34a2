"""A search on several cores: what one process finds, and nothing left behind."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from searches import SEARCHES
from waiting import until

from labkit.core.errors import InvalidInput, JobFailed
from labkit.search.cores import WIDE, Expander, on_cores
from labkit.sim.explore import Exploration, Progress, Search, at_once, explore
from labkit.sim.models import MODELS
from labkit.sim.trace import make


def on(cores: int, model: str, given: dict[str, object], wide: int = 1, **limits) -> Exploration:
    """A search in so many processes, which share it from the beginning unless it is told otherwise."""
    with on_cores(make(model, given), cores, wide) as shared:
        return shared.explore(**limits)


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    # Not their children: a server that other tests keep in this process begins and ends such at any moment.
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) <= before


@pytest.mark.parametrize("name", SEARCHES)
def test_several_find_what_one_finds(name: str):
    model, given = SEARCHES[name]
    alone = explore(make(model, given), max_states=6_000)
    for cores, wide in ((2, 1), (2, 40), (3, 1)):
        assert on(cores, model, given, wide, max_states=6_000) == alone


def test_every_model_is_searched_on_several_cores():
    assert {model for model, _ in SEARCHES.values()} == set(MODELS)


def test_a_search_without_a_wide_level_has_no_helpers():
    model = make("two_phase_commit", {"participants": 1})
    with on_cores(model, 2) as shared:
        assert shared.explore() == explore(model)
        assert shared.helpers == []
        assert shared.explore(max_states=5) == explore(model, max_states=5)


def test_one_core_has_no_helpers():
    model = make("two_phase_commit", {})
    with on_cores(model, 1, wide=1) as shared:
        assert shared.explore() == explore(model)
        assert shared.helpers == []


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


@pytest.mark.parametrize("name", ["pipeline, append", "barriers", "kafka_log"])
def test_what_has_no_number_yet_is_reached_once_more(name: str):
    """A process that knows the first state alone expands everything: nearly all that it finds has no number
    at first.
    """
    model, given = SEARCHES[name]
    search, blind = (Search(make(model, given), 3_000) for _ in range(2))
    blind.packer.close()
    expander, told = Expander(blind), blind.packer.news([0] * blind.packer.width)[0]
    unencoded = 0
    while search.level:
        level, search.level = search.level, []
        for numbers in at_once(level, 50):
            told, news = search.packer.news(told)
            expander.learn(news)
            found = expander.expand(numbers, is_last=bool(search.stopped), are_often_met=search.are_often_met)
            unencoded += len(found.unencoded)
            search.admit(numbers, found)
        search.finish_level()
    assert search.result() == explore(make(model, given), max_states=3_000)
    assert unencoded > 30


def test_portions_are_admitted_in_their_order_whoever_was_faster():
    """The second half of a level comes first: it waits until the first half is there."""
    model, given = SEARCHES["2pc, early"]
    with on_cores(make(model, given), 3, wide=1) as shared:
        collect = shared._collect

        def late(seconds: float) -> bool:
            if shared._sent < len(shared._portions):
                return False
            return collect(seconds)

        shared._collect = late
        assert shared.explore() == explore(make(model, given))


def test_any_number_of_processes_finds_the_same():
    model, given = SEARCHES["2pc, blocked"]
    alone = explore(make(model, given))
    assert alone.violations
    for cores in (3, 5):
        assert on(cores, model, given) == alone


@pytest.mark.parametrize("most", [1, 2, 17, 500, 719, 720, 721])
def test_a_limit_cuts_a_level_where_one_process_does(most: int):
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
        return len(asked) < 15

    found = on(2, "two_phase_commit", {"participants": 4}, keep_going=twice)
    assert (found.exhausted, found.stopped) == (False, "it was told to stop")
    assert found.unique_states >= asked[-1].unique > 1
    assert found.violations == ()


DEPTH = 6
"""A level of two-phase commit with four participants that helpers share: it is reached within two seconds."""


def test_a_helper_that_is_killed_ends_the_search_with_one_sentence():
    with on_cores(make("two_phase_commit", {"participants": 4}), 3) as shared:

        def kill(progress: Progress) -> bool:
            if progress.depth == DEPTH and shared.helpers[0].process.is_alive():
                shared.helpers[0].process.kill()
                shared.helpers[0].process.join()
            return True

        with pytest.raises(JobFailed, match=r"has ended with signal 9; search again"):
            shared.explore(keep_going=kill)


def test_an_interrupt_leaves_no_helper():
    def interrupt(progress: Progress) -> bool:
        if progress.depth == DEPTH:
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        on(2, "two_phase_commit", {"participants": 4}, keep_going=interrupt)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_helpers_end_with_whoever_asked(sent: signal.Signals):
    line = ["explore", "two_phase_commit", "--set", "participants=6", "--cores", "3"]
    with subprocess.Popen(
        [sys.executable, "-m", "labkit", *line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as asked:
        process = psutil.Process(asked.pid)
        until(lambda: len(process.children()) == 2, "two helpers")
        helpers = process.children()
        asked.send_signal(sent)
        assert asked.wait(60) != 0
    _, alive = psutil.wait_procs(helpers, timeout=60)
    assert alive == []


def test_too_many_cores_are_refused():
    with pytest.raises(InvalidInput, match=r"--cores 65: choose 1 to 64"):
        on(65, "two_phase_commit", {})
