"""Failpoints are named once, lie in one place each, and are refused by name where they do not exist."""

import re
from collections import Counter
from pathlib import Path

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import RECOVERY_POINTS, SENTENCES, Crash, FailPoint, Order, parse_crash
from labkit.core.strategies import POINTS, Strategy, check_crash, orders

LABKIT = Path(__file__).parent.parent / "labkit"


def test_every_failpoint_has_exactly_one_call_site():
    """The same point in two places would mean two different moments."""
    real = [path for path in LABKIT.rglob("*.py") if "sim" not in path.relative_to(LABKIT).parts]
    sites = Counter(
        name for path in real for name in re.findall(r"\breach\(\s*FailPoint\.(\w+)", path.read_text(encoding="utf-8"))
    )
    assert sites == Counter(point.name for point in FailPoint)


def test_every_point_has_a_sentence_and_a_strategy_or_is_of_recovery():
    assert set(SENTENCES) == set(FailPoint)
    assert {point for points in POINTS.values() for point in points} | set(RECOVERY_POINTS) == set(FailPoint)
    assert all(point.sentence.endswith(".") for point in FailPoint)


def test_the_two_orders_differ_in_where_the_commit_log_comes():
    engine, decision = (POINTS[Strategy.TWO_PHASE, order] for order in (Order.ENGINE, Order.DECISION))
    assert engine[-1] is FailPoint.AFTER_COMMIT_LOG
    assert decision.index(FailPoint.AFTER_HANDLES) + 1 == decision.index(FailPoint.AFTER_COMMIT_LOG)
    assert decision.index(FailPoint.AFTER_COMMIT_LOG) + 1 == decision.index(FailPoint.MID_COMMIT)


@pytest.mark.parametrize("crash", [Crash(FailPoint.MID_COMMIT, 7), Crash(FailPoint.MID_RESOLVE)])
def test_a_crash_is_read_as_it_is_written(crash: Crash):
    assert parse_crash(str(crash)) == crash


def test_a_point_without_a_batch_is_of_the_first():
    assert parse_crash("sink.mid_write") == Crash(FailPoint.MID_WRITE, 0)


@pytest.mark.parametrize("text", ["", "@0", "sink", "sink.mid_write@", "sink.mid_write@1.5", "recovery.mid_resolve@0"])
def test_other_texts_are_refused(text: str):
    with pytest.raises(InvalidInput):
        parse_crash(text)


def test_a_recovery_point_fits_every_strategy_and_others_only_theirs():
    for (strategy, order), points in POINTS.items():
        for point in FailPoint:
            if point in points or point.in_recovery:
                check_crash(Crash(point), strategy, order)
            else:
                with pytest.raises(InvalidInput, match="has no failpoint"):
                    check_crash(Crash(point), strategy, order)


def test_only_what_defers_has_an_order_and_decision_is_the_default():
    assert {strategy: orders(strategy)[0] for strategy in Strategy} == {
        strategy: Order.DECISION if strategy.facts.defers else Order.NONE for strategy in Strategy
    }
    known = (Strategy.APPEND, Strategy.IDEMPOTENT, Strategy.BATCH_MARKER, Strategy.WAL, Strategy.TWO_PHASE)
    assert [strategy for strategy in known if Order.ENGINE in orders(strategy)] == [Strategy.WAL, Strategy.TWO_PHASE]
