"""From readings to the judge: each axis by the readings that show it, and nothing by those that do not."""

from collections.abc import Sequence

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee, Verdict
from labkit.crashtest.rows import LARGE, Rows, Seen, Shape, generate, generate_large, row_counts, shape_of
from labkit.crashtest.samples import Sample, judge_run

ROWS = generate(2, per_batch=4)
A, B = ([Seen(**row) for row in batch.rows] for batch in ROWS.batches)


def sample(seen: Sequence[Seen], moment: str = "", unfinished: tuple[int, ...] = ()) -> Sample:
    return Sample(0.0, 1, tuple(seen), moment, unfinished)


def judged(*samples: Sample, shape: Shape = Shape.ROWS, rows: Rows = ROWS) -> Verdict:
    return judge_run(samples, rows, shape, rows.expected())[0]


def violated(verdict: Verdict) -> set[str]:
    return {name for name, outcome in verdict.properties.items() if outcome == "violated"}


def test_every_row_once_is_exactly_once() -> None:
    verdict = judged(sample(A), sample([*A, *B], "end"))
    assert (verdict.guarantee, violated(verdict)) == (Guarantee.EXACTLY_ONCE, set())


def test_a_row_that_is_missing_at_the_end_is_lost() -> None:
    assert judged(sample([*A, *B[1:]], "end")).lost == (B[0].id,)


def test_a_row_that_is_there_twice_at_the_end_is_a_duplicate() -> None:
    verdict = judged(sample(A, "crash 1"), sample([*A, *A, *B], "end"))
    assert verdict.duplicate == tuple(row.id for row in A)
    assert violated(verdict) == {"no_duplicate"}


def test_a_row_that_was_there_and_is_gone_was_read_too_early() -> None:
    verdict = judged(sample([*A, A[0]]), sample([*A, *B], "end"))
    assert violated(verdict) == {"no_aborted_read"}


def test_a_reader_that_looks_only_at_the_end_does_not_see_it() -> None:
    assert violated(judged(sample([*A, *B], "end"))) == set()


def test_a_part_of_a_batch_at_a_quiet_moment_is_a_fractured_read() -> None:
    verdict = judged(sample(A[:2], "crash 1", (0,)), sample([*A, *B], "end"))
    assert violated(verdict) == {"no_fractured_read"}


def test_a_part_of_a_batch_while_the_job_runs_is_not() -> None:
    assert violated(judged(sample(A[:2]), sample([*A, *B], "end"))) == set()


def test_a_whole_batch_that_its_sink_has_not_finished_is_a_precommitted_read() -> None:
    verdict = judged(sample(A, "crash 1", (0,)), sample([*A, *B], "end"))
    assert violated(verdict) == {"no_precommitted_read"}


def test_a_key_that_jumps_back_is_a_regression() -> None:
    verdict = judged(sample(B), sample(A), sample(B, "end"), shape=Shape.LAST)
    assert violated(verdict) == {"no_regression"}


def test_rows_of_one_key_that_come_late_are_none() -> None:
    assert violated(judged(sample(B), sample([*B, *A], "end"))) == set()


def test_a_key_that_is_gone_at_the_end_has_lost_all_its_rows() -> None:
    verdict = judged(sample(A), sample(B), sample(B[1:], "end"), shape=Shape.LAST)
    assert verdict.lost == (A[0].id, B[0].id)


def test_a_row_that_was_never_written_is_unexpected() -> None:
    assert judged(sample([*A, *B, Seen(999, "k0", 1)], "end")).unexpected == (999,)
    assert judged(sample([*A, *B[1:], B[0]._replace(amount=5)], "end")).unexpected == (B[0].id,)


@pytest.mark.parametrize("times", [0, 1, 2, 63])
def test_a_sum_says_how_often_each_row_was_added(times: int) -> None:
    rows = generate(3)
    total = 1 + times * 64 + 64**2
    found = row_counts([Seen(None, "k0", total)], Shape.SUMS, rows.expected())
    assert [found[row] for row in sorted(found)] == ([1, times, 1] if times else [1, 1])


def test_a_sum_that_no_rows_give_is_unexpected() -> None:
    found = row_counts([Seen(None, "k0", -1)], Shape.SUMS, ROWS.expected())
    assert [(row.offset, row.value) for row in found] == [(-1, -1)]


def test_what_a_reader_returns_is_told_from_what_it_read() -> None:
    assert shape_of([*A, *B], ROWS) is Shape.ROWS
    assert shape_of(B, ROWS) is Shape.LAST
    assert shape_of([Seen(None, "k0", 65)], ROWS) is Shape.SUMS
    with pytest.raises(InvalidInput, match="no id"):
        shape_of([Seen(None, "k0", None)], ROWS)


def unique(batches: int = 2) -> Rows:
    """A user's own rows, each with a key of its own, as of orders."""
    numbers = range(5 * batches)
    rows = [{"id": n, "key": f"order-{n}", "amount": 1} for n in numbers]
    return Rows([rows[5 * n : 5 * n + 5] for n in range(batches)], generated=False)


def test_keys_that_are_in_the_input_once_prove_no_replacing() -> None:
    rows = unique()
    there = [Seen(**row) for batch in rows.batches for row in batch.rows]
    assert shape_of(there, rows) is Shape.ROWS


def test_a_row_of_a_unique_key_that_comes_twice_is_a_duplicate() -> None:
    rows = unique()
    there = [Seen(**row) for batch in rows.batches for row in batch.rows]
    shape = shape_of(there, rows)
    verdict = judged(sample([*there, there[0]], "end"), shape=shape, rows=rows)
    assert verdict.duplicate == (0,)
    assert verdict.guarantee is Guarantee.AT_LEAST_ONCE


def test_a_key_that_is_there_twice_is_one_row_too_many_even_of_replaced_rows() -> None:
    verdict = judged(sample([*B, B[0]], "end"), shape=Shape.LAST)
    assert verdict.unexpected == (B[0].id,)
    assert verdict.guarantee is Guarantee.AT_LEAST_ONCE
    old = judged(sample([*B, A[0]], "end"), shape=Shape.LAST)
    assert (old.unexpected, old.lost) == ((A[0].id,), ())


def test_a_key_that_is_there_twice_for_a_moment_was_read_too_early() -> None:
    verdict = judged(sample([*B, A[0]]), sample(B, "end"), shape=Shape.LAST)
    assert verdict.guarantee is Guarantee.EXACTLY_ONCE
    assert violated(verdict) == {"no_aborted_read"}


def test_a_reader_that_counts_is_told_so() -> None:
    with pytest.raises(InvalidInput, match="number of rows of each key"):
        shape_of([Seen(None, f"k{n}", 2) for n in range(4)], ROWS)
    assert shape_of([Seen(None, f"k{n}", 65) for n in range(4)], ROWS) is Shape.SUMS


def test_a_large_batch_is_followed_by_a_small_one_with_ids_of_its_own() -> None:
    first, second = generate_large().batches
    assert (len(first.rows), len(second.rows)) == (LARGE, 10)
    ids = [row["id"] for row in (*first.rows, *second.rows)]
    assert len(set(ids)) == len(ids)
    assert generate_large().planned_batches() != []
