"""The input of a query as what is due: rows are known by their ids, and their batches are known, too."""

from typing import Any

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.crashtest.batch_expectation import expect_batches
from labkit.crashtest.rows import Rows, Shape, generate
from labkit.crashtest.samples import Sample, judge_run

ROWS = generate(2)
ALL = [row for batch in ROWS.batches for row in batch.rows]
LATEST = list(ROWS.batches[1].rows)
SUMS = [[f"k{place}", 1 + 64] for place in range(10)]


def judged(read: list[Any], *readings: list[Any], unfinished: tuple[int, ...] = ()) -> Verdict:
    expectation = expect_batches(ROWS, read)
    last = len(readings)
    samples = [
        Sample(0.0, number, expectation.seen(values), f"crash {number}", () if number == last else unfinished)
        for number, values in enumerate(readings, start=1)
    ]
    return judge_run(samples, expectation.rows, expectation.history_shape, expectation.rows.expected())[0]


@pytest.mark.parametrize(
    ("read", "shape"),
    [(ALL, Shape.ROWS), ([row["id"] for row in ALL], Shape.ROWS), (LATEST, Shape.LAST), (SUMS, Shape.SUMS)],
)
def test_nothing_is_missing_from_what_a_run_without_a_crash_shows(read: list[Any], shape: Shape) -> None:
    expectation = expect_batches(ROWS, read)
    assert expectation.shape is shape
    assert expectation.misses(read) == 0
    assert judged(read, read).guarantee == "exactly-once"


@pytest.mark.parametrize(("read", "less"), [(ALL, ALL[1:]), (LATEST, LATEST[1:]), (SUMS, [["k0", 1], *SUMS[1:]])])
def test_a_row_that_is_not_there_is_missed_and_lost(read: list[Any], less: list[Any]) -> None:
    assert expect_batches(ROWS, read).misses(less) == 1
    assert judged(read, less).lost


@pytest.mark.parametrize(("read", "more"), [(ALL, [*ALL, ALL[0]]), (SUMS, [["k0", 2 + 64], *SUMS[1:]])])
def test_a_row_that_is_there_twice_is_a_duplicate(read: list[Any], more: list[Any]) -> None:
    assert expect_batches(ROWS, read).misses(more) == 0
    assert judged(read, more).duplicate == (0,)


def test_a_part_of_a_batch_is_a_fractured_read_and_all_of_it_too_early_a_precommitted_one() -> None:
    part, whole = ALL[:5], ALL[:10]
    assert judged(ALL, part, ALL).fractured_read
    early = judged(ALL, whole, ALL, unfinished=(0,))
    assert early.precommitted_read
    assert not early.fractured_read
    assert not judged(ALL, whole, ALL).precommitted_read


def test_what_is_no_row_comes_from_nowhere() -> None:
    """As from a file that a crash has torn."""
    assert judged(ALL, [*ALL, 1.5, {"id": "x"}]).unexpected


def test_the_user_s_own_ids_name_their_rows() -> None:
    rows = Rows([[{"id": 70 + number, "name": f"n{number}"} for number in range(8)]], generated=False)
    read = list(rows.batches[0].rows)
    expectation = expect_batches(rows, read)
    assert expectation.by_offset[73] == {"id": 73, "name": "n3"}
    assert expectation.misses(read[1:]) == 1


@pytest.mark.parametrize("read", [[["a"], ["b"]], [{"word": "a", "n": 2}]])
def test_rows_that_name_nothing_are_refused(read: list[Any]) -> None:
    with pytest.raises(InvalidInput, match="return"):
        expect_batches(ROWS, read)
