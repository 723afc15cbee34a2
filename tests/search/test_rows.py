"""Numbers as rows of bytes: what sets of integers say, at any width, and in files what was put there."""

from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labkit.search import rows
from labkit.search.files import Files

WIDE = 13
"""Bytes of a row that no machine word holds."""
NUMBERS = st.lists(st.one_of(st.integers(0, 40), st.integers(0, (1 << 8 * WIDE) - 1)), max_size=40)


def pairs(states: list[int], parents: list[int], width: int = WIDE) -> rows.Pairs:
    return rows.pairs(rows.keys(states, width), rows.keys(parents, width))


@given(NUMBERS)
def test_rows_hold_their_numbers_and_sort_as_they_do(numbers: list[int]):
    keys = rows.keys(numbers, WIDE)
    assert rows.numbers(keys) == numbers
    assert rows.numbers(np.sort(keys)) == sorted(numbers)
    assert rows.numbers(rows.widened(keys, WIDE + 4)) == numbers


def test_a_number_that_ends_in_zeros_keeps_them():
    numbers = [0, 1 << 8, 1 << 16, 1 << 64, 1 << 72]
    assert rows.numbers(rows.keys(numbers, 10)) == numbers


@given(NUMBERS, NUMBERS, st.integers(WIDE, WIDE + 3))
def test_what_is_new_is_what_sets_say(known: list[int], reached: list[int], width: int):
    """`known` was written when numbers were narrower. Of equal states the first one's parent counts."""
    there = rows.keys(sorted(set(known)), WIDE)
    sent = pairs(reached, [*range(len(reached))], width)
    after, fresh = rows.admitted(rows.widened(there, width), sent)
    new = sorted(set(reached) - set(known))
    assert rows.numbers(after) == sorted({*known, *reached})
    assert rows.numbers(fresh["state"]) == new
    assert rows.numbers(fresh["parent"]) == [*map(reached.index, new)]
    for number in new:
        assert rows.parent(fresh, number) == reached.index(number)


@given(NUMBERS, st.integers(1, 9))
def test_a_number_belongs_to_one_part_however_wide_its_row(numbers: list[int], parts: int):
    keys = rows.keys(numbers, WIDE)
    owners = rows.owners(keys, parts).tolist()
    assert all(0 <= owner < parts for owner in owners)
    for width in (WIDE + 2, 16, 24):
        assert rows.owners(rows.widened(keys, width), parts).tolist() == owners


def test_parts_are_of_about_one_size():
    """Also where numbers differ in few bits, as those of states do."""
    for shift in (0, 20, 60):
        keys = rows.keys([number << shift for number in range(20_000)], WIDE)
        sizes = np.bincount(rows.owners(keys, 10), minlength=10)
        assert sizes.min() > 1_600
        assert sizes.max() < 2_400


@given(several=st.lists(NUMBERS, max_size=4))
def test_several_widths_are_joined_in_order(several: list[list[int]]):
    arrays = [pairs(numbers, numbers, WIDE + place) for place, numbers in enumerate(several)]
    joined = rows.joined(arrays, WIDE + 4)
    assert rows.numbers(joined["state"]) == [*chain(*several)]


def test_bits_become_whole_bytes():
    assert [*map(rows.width_of, (0, 1, 8, 9, 64, 65))] == [1, 1, 1, 2, 8, 9]


def test_each_part_receives_what_it_owns_and_nothing_else(tmp_path: Path):
    files, parts = Files(str(tmp_path)), 7
    numbers = [number * 977 for number in range(100)]
    files.send(pairs(numbers, numbers[::-1]), "sent", 3, 2, parts)
    received = [files.received("sent", 3, 2, part, parts) for part in range(parts)]
    got = [number for each in received for number in rows.numbers(each["state"])]
    assert sorted(got) == numbers
    assert all(a < b for each in received for a, b in pairwise(rows.numbers(each["state"])))
    for part, each in enumerate(received):
        assert set(rows.owners(each["state"], parts).tolist()) <= {part}
        assert rows.numbers(each["parent"]) == [numbers[-1] - state for state in rows.numbers(each["state"])]
