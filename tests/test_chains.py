"""The grid of chains: every square a search to its end, and in step with what is predicted of real Spark."""

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.core.strategies import Strategy
from labkit.runs.expected import expectations
from labkit.teach.chains import predicted


@pytest.fixture(scope="module")
def chains():
    return lab.chains()


def test_every_chain_is_there_and_was_searched_to_the_end(chains):
    assert len(list(chains)) == 2 * 3 * len(Strategy)
    assert all(chains[each].exhausted for each in chains)


def cells_of(chain):
    """The predictions for a chain, of which each store has its own."""
    return [cell for cell in expectations() if (cell.strategy, cell.order) == (chain.sink, chain.order)]


def test_the_log_chains_are_as_real_spark_is_predicted(chains):
    """The predictions are compared with real Spark by `tests/spark/test_matrix.py`."""
    kept = [each for each in chains if each.source == "log" and each.keeps_checkpoint]
    assert len(kept) == 2 * len(Strategy)
    for each in kept:
        worst, points = predicted(each)
        assert chains[each].guarantee == worst, each
        assert points == len({cell.point for cell in cells_of(each)}) < len(cells_of(each)), "counted in every store"


def test_a_link_that_nobody_knows_is_refused_with_the_nearest(chains):
    with pytest.raises(InvalidInput, match="there is no sink 'two_fase'; did you mean 'two_phase'"):
        _ = chains["log", "log-then-commit", "two_fase"]
    with pytest.raises(InvalidInput, match="there is no engine"):
        _ = chains["log", "spark", "append"]


def test_the_grid_says_of_each_square_how_anybody_knows(chains):
    text, html = str(chains), chains._repr_mimebundle_()["text/html"]
    assert "two_phase     at-least-once *  exactly-once *   at-least-once" in text
    assert html.count("<details") == 6 * len(Strategy)
    assert html.count("Simulated: every schedule with at most one crash") == 6 * len(Strategy)
    assert html.count("Real Spark, killed at each of its") == 2 * len(Strategy)
    assert html.count("Real Spark with its socket source (notebook 07)") == 3
    assert html.count("lab.explore(") == 6 * len(Strategy)
    assert "<script" not in html
