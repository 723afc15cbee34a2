"""Rows of any columns: which of them are due, which are there too often, and what the one judge says of them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee, Verdict
from labkit.crashtest.blackbox.expectation import Expectation, expect, lines
from labkit.crashtest.blackbox.story import because
from labkit.crashtest.rows import Shape
from labkit.crashtest.samples import Sample, judge_run

PLAIN = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 2, "b": "y"}]
KEYED = [{"key": key, "value": n} for n, key in enumerate("xyxzx")]
LATEST = [KEYED[1], KEYED[3], KEYED[4]]
COUNTS = [["apple", 3], ["pear", 2]]


def judged(due: Sequence[Any], healthy: Sequence[Any], *readings: Sequence[Any]) -> Verdict:
    expectation = expect(due, healthy)
    samples = [
        Sample(0.0, number, expectation.seen(values), f"moment {number}")
        for number, values in enumerate(readings, start=1)
    ]
    shape, rows = expectation.history_shape, expectation.rows
    return judge_run(samples, rows, shape, rows.expected())[0]


def guarantee(due: Sequence[Any], healthy: Sequence[Any], seen: Sequence[Any]) -> str:
    return judged(due, healthy, seen).guarantee


@pytest.mark.parametrize(
    ("due", "healthy", "shape"),
    [
        (PLAIN, PLAIN, Shape.ROWS),
        (KEYED, KEYED, Shape.ROWS),
        (KEYED, LATEST, Shape.LAST),
        (COUNTS, COUNTS, Shape.SUMS),
        ([{"word": "a", "n": 1}], [{"n": 1, "word": "a"}], Shape.SUMS),
        ([{"word": "a", "id": 1}], [{"id": 1, "word": "a"}], Shape.ROWS),
        ([{"id": "a", "n": 1}], [{"n": 1, "id": "a"}], Shape.SUMS),
        ([["a", 1], ["a", 2]], [["a", 1], ["a", 2]], Shape.ROWS),
        ([["a", 0]], [["a", 0]], Shape.ROWS),
        ([[1, 2]], [[1, 2]], Shape.ROWS),
        ([["a", True]], [["a", True]], Shape.ROWS),
    ],
)
def test_the_shape_is_told_from_a_run_without_a_crash(due: list[Any], healthy: list[Any], shape: Shape) -> None:
    assert expect(due, healthy).shape is shape


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        (PLAIN, Guarantee.EXACTLY_ONCE),
        (PLAIN[::-1], Guarantee.EXACTLY_ONCE),
        (PLAIN[:2], Guarantee.AT_MOST_ONCE),
        ([*PLAIN, PLAIN[0]], Guarantee.AT_LEAST_ONCE),
        ([*PLAIN, PLAIN[1]], Guarantee.AT_LEAST_ONCE),
        ([*PLAIN, {"a": 3}], Guarantee.AT_LEAST_ONCE),
        ([PLAIN[1], PLAIN[1], PLAIN[1]], Guarantee.NONE),
        ([], Guarantee.AT_MOST_ONCE),
    ],
)
def test_a_row_is_due_as_often_as_it_was_expected(seen: list[Any], left: Guarantee) -> None:
    assert guarantee(PLAIN, PLAIN, seen) == left
    lost = left in (Guarantee.AT_MOST_ONCE, Guarantee.NONE)
    assert bool(expect(PLAIN, PLAIN).misses(seen)) == lost


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        (COUNTS, Guarantee.EXACTLY_ONCE),
        ([["apple", 4], ["pear", 2]], Guarantee.AT_LEAST_ONCE),
        ([["apple", 2], ["pear", 2]], Guarantee.AT_MOST_ONCE),
        ([["apple", 2], ["pear", 3]], Guarantee.NONE),
        ([["pear", 2]], Guarantee.AT_MOST_ONCE),
        ([*COUNTS, ["plum", 1]], Guarantee.AT_LEAST_ONCE),
        ([["apple", 1], ["apple", 2], ["pear", 2]], Guarantee.NONE),
        ([*COUNTS, ["apple", 3]], Guarantee.AT_LEAST_ONCE),
    ],
)
def test_a_total_that_is_too_small_has_lost_and_one_too_large_has_twice(seen: list[Any], left: Guarantee) -> None:
    assert guarantee(COUNTS, COUNTS, seen) == left


def test_of_a_table_the_last_row_of_each_key_is_due_and_going_back_is_seen() -> None:
    assert guarantee(KEYED, LATEST, LATEST) == Guarantee.EXACTLY_ONCE
    assert guarantee(KEYED, LATEST, LATEST[:2]) == Guarantee.AT_MOST_ONCE
    back = judged(KEYED, LATEST, LATEST, [KEYED[0]], LATEST)
    assert back.guarantee == Guarantee.EXACTLY_ONCE
    assert back.regression == (0,)
    twice = guarantee(KEYED, LATEST, [*LATEST, KEYED[0]])
    assert twice == Guarantee.AT_LEAST_ONCE


def test_a_row_that_was_there_and_is_gone_was_read_too_early() -> None:
    verdict = judged(PLAIN, PLAIN, [*PLAIN, {"a": 9}], PLAIN)
    assert verdict.guarantee == Guarantee.EXACTLY_ONCE
    assert verdict.aborted_read == (-1,)


def test_no_row_of_the_kind_that_is_expected_is_said_at_once() -> None:
    with pytest.raises(InvalidInput, match="Give both the same columns"):
        expect(PLAIN, [[1, "x"]])
    with pytest.raises(InvalidInput, match="Give both the same columns"):
        expect(COUNTS, [{"other": 3}])
    few: Expectation = expect(COUNTS, [["apple", 1]])
    assert few.misses([["apple", 1]]) == 2


def test_rows_as_lines_of_json() -> None:
    text = '{"b": 1.0, "a": [2.5]}\n\n[1]\n'
    assert lines(text, "x") == [{"b": 1, "a": [2.5]}, [1]]
    assert json.dumps(lines(text, "x")[0]["b"]) == "1"
    with pytest.raises(InvalidInput, match="x, line 2: this is not valid JSON"):
        lines("1\n{", "x")


def test_a_verdict_quotes_the_rows_of_the_person() -> None:
    twice = judged(PLAIN, PLAIN, [*PLAIN, PLAIN[0]])
    assert because(twice, dict(enumerate(PLAIN)), 3) == (
        'at-least-once, because 1 of 3 row(s) came out twice or more, for example {"a": 1, "b": "x"}'
    )
    strange = judged(PLAIN, PLAIN, [*PLAIN[1:], {"a": 9}])
    assert because(strange, dict(enumerate(PLAIN)), 3) == (
        'none, because 1 of 3 row(s) got lost, for example {"a": 1, "b": "x"} and rows came out that nobody '
        'expected, for example {"a": 9}'
    )
    gone = judged(PLAIN, PLAIN, [*PLAIN, {"a": 9}], PLAIN)
    assert because(gone, dict(enumerate(PLAIN)), 3) == (
        "exactly-once, because each of 3 row(s) that are due came out once; meanwhile the reader saw "
        '{"a": 9}, which was gone again later'
    )
