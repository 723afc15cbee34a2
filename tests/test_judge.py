"""Examples of what both judges say, one for each anomaly and boundary, and what a long history may cost."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest
from judges import anomalies, counted
from judges import judge_by_both as judge

from labkit.core.errors import InvalidInput
from labkit.core.judge import ANOMALY, Guarantee, Outcome, satisfies
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility
from labkit.core.verdict import LISTS

ABORTED, PRECOMMITTED = Visibility.ABORTED, Visibility.PRECOMMITTED
END = Reading("end")

HELLO = counted(["hello", "world", "hello"])


def wrote(offset, attempt=1, visibility=Visibility.COMMITTED, batch=0):
    return Observation(*HELLO[offset], batch, attempt, visibility)


def verdict_on(*events, expected=HELLO, **history):
    return judge(iter(expected), History(iter((*events, END)), **history))


# Examples: one for each anomaly and boundary


def test_a_clean_run_is_exactly_once():
    verdict = verdict_on(wrote(0), wrote(2), wrote(1))
    assert verdict.guarantee == Guarantee.EXACTLY_ONCE
    assert anomalies(verdict) == {}
    assert set(verdict.properties.values()) == {Outcome.HOLDS}
    assert verdict.because == "exactly-once, because every one of the 3 records came out once"
    assert (verdict.final, verdict.rows) == ({"hello": 2, "world": 1}, 3)


@pytest.mark.parametrize("expected", [[], HELLO])
@pytest.mark.parametrize("hidden", [[], [wrote(0)]])
@pytest.mark.parametrize("keyed", [False, True])
def test_nothing_is_known_where_nobody_looked(expected, hidden, keyed):
    verdict = judge(expected, History([], keyed=keyed, hidden=hidden))
    assert verdict.guarantee == Guarantee.UNKNOWN
    assert set(verdict.properties.values()) == {Outcome.UNKNOWN}
    assert verdict.lost == ()
    assert verdict.because == "unknown, because there is neither a reading nor an observation"


@pytest.mark.parametrize("keyed", [False, True])
def test_a_reader_who_finds_nothing_of_nothing_expected_is_content(keyed):
    verdict = verdict_on(expected=[], keyed=keyed)
    assert verdict.guarantee == Guarantee.EXACTLY_ONCE
    assert set(verdict.properties.values()) == {Outcome.HOLDS}


@pytest.mark.parametrize("keyed", [False, True])
def test_a_reader_who_finds_nothing_finds_all_lost(keyed):
    verdict = verdict_on(keyed=keyed, planned_batches=[PlannedBatch(7, 0, 2)])
    assert verdict.guarantee == Guarantee.AT_MOST_ONCE
    assert anomalies(verdict) == {"lost": [0, 1, 2]}
    first, _, beyond_the_plan = verdict.witnesses["lost"]
    assert (first.batch, first.incarnation, beyond_the_plan.batch) == (7, None, None)
    assert verdict.because == (
        "not exactly-once, because 3 of 3 records got lost, first offset 0 ('hello' = 1): no effect of it is left; "
        "at-most-once still holds"
    )


def test_an_observation_without_a_reading_can_be_judged():
    assert judge(HELLO[:1], History([wrote(0)])).guarantee == Guarantee.EXACTLY_ONCE


def test_repeated_rows_are_duplicates_and_a_jump_back():
    verdict = verdict_on(wrote(0), wrote(2), wrote(1), END, wrote(0, 2), wrote(2, 2), wrote(1, 2))
    assert verdict.guarantee == Guarantee.AT_LEAST_ONCE
    assert anomalies(verdict) == {"duplicate": [0, 1, 2], "regression": [0]}
    assert verdict.because == (
        "not exactly-once, because 3 of 3 records came out twice or more, first offset 0 ('hello' = 1): written by "
        "attempt 1 of batch 0 and by attempt 2 of batch 0; at-least-once still holds; meanwhile a reader saw 'hello' "
        "jump back from 2 to 1"
    )
    assert (verdict.final, verdict.rows) == ({"hello": 2, "world": 1}, 6)
    assert verdict.witnesses["regression"][0].to_json() == {
        "offset": 0, "key": "hello", "value": 1, "batch": 0, "attempt": 2, "from_value": 2, "to_value": 1,
    }  # fmt: skip


def test_a_third_occurrence_is_no_second_duplicate():
    verdict = verdict_on(wrote(1), wrote(1, 2), wrote(1, 3), wrote(0), wrote(2))
    assert verdict.duplicate == (1,)
    (witness,) = verdict.witnesses["duplicate"]
    assert (witness.earlier.incarnation, witness.incarnation) == (1, 2)
    assert verdict.rows == 5


def test_a_repeated_upsert_is_no_duplicate_but_may_jump_back():
    verdict = verdict_on(wrote(0), wrote(2), wrote(1), END, wrote(0, 2), wrote(2, 2), wrote(1, 2), keyed=True)
    assert verdict.guarantee == Guarantee.EXACTLY_ONCE
    assert anomalies(verdict) == {"regression": [0]}
    assert verdict.rows == 2
    assert verdict.because.endswith("; meanwhile a reader saw 'hello' jump back from 2 to 1")


def test_an_equal_offset_is_no_jump_back():
    assert verdict_on(wrote(0), wrote(0, 2), wrote(1), wrote(2)).regression == ()


def test_regressions_are_told_in_the_order_in_which_they_happened():
    expected = counted(["a"] * 4)
    rows = [Observation(*expected[offset], 0, 1) for offset in (0, 1, 2, 3, 2, 1, 2, 0)]
    verdict = verdict_on(*rows, expected=expected, keyed=True)
    assert verdict.regression == (2, 1, 0)
    assert [case.offset for case in verdict.witnesses["regression"]] == [2, 1, 0]
    assert verdict.lost == (1, 2, 3)


def test_a_later_upsert_contains_the_earlier_ones():
    assert anomalies(verdict_on(wrote(2), wrote(1), keyed=True)) == {}
    assert anomalies(verdict_on(wrote(2), wrote(1))) == {"lost": [0]}


def test_an_upsert_overwritten_with_an_older_value_is_lost():
    verdict = verdict_on(wrote(0), wrote(2), wrote(1), wrote(0, 2), keyed=True)
    assert verdict.guarantee == Guarantee.AT_MOST_ONCE
    assert anomalies(verdict) == {"lost": [2], "regression": [0]}
    assert verdict.final == {"hello": 1, "world": 1}
    (witness,) = verdict.witnesses["lost"]
    assert (witness.incarnation, witness.overwritten_by.value, witness.overwritten_by.incarnation) == (1, 1, 2)
    assert "first offset 2 ('hello' = 2): overwritten by attempt 2 of batch 0 with 1; at-most" in verdict.because


def test_an_upsert_overwritten_with_an_unexplained_value_is_lost():
    verdict = verdict_on(wrote(0), wrote(2), wrote(1), Observation(9, "hello", 50, 0, 2), keyed=True)
    assert anomalies(verdict) == {"lost": [0, 2], "unexpected": [9]}
    assert verdict.guarantee == Guarantee.NONE
    assert verdict.final["hello"] == 50


def test_lost_and_duplicate_together_leave_no_guarantee():
    verdict = verdict_on(wrote(0), wrote(0, 2), wrote(2))
    assert verdict.guarantee == Guarantee.NONE
    assert anomalies(verdict) == {"lost": [1], "duplicate": [0]}
    assert verdict.because.startswith("neither at-least-once nor at-most-once, because 1 of 3 records got lost, first")
    assert "and 1 of 3 records came out twice or more" in verdict.because


@pytest.mark.parametrize(
    "row",
    [
        Observation(9, "hello", 3, 0, 1),
        Observation(-1, "hello", 2, 0, 1),
        Observation(2, "hello", 3, 0, 1),
        Observation(2, "other", 2, 0, 1),
    ],
)
def test_a_row_that_no_input_explains_is_unexpected(row):
    verdict = verdict_on(wrote(0), row, wrote(1), wrote(2))
    assert anomalies(verdict) == {"unexpected": [row.offset]}
    assert verdict.guarantee == Guarantee.AT_LEAST_ONCE
    assert verdict.rows == 4
    assert "rows that no input explains (number of offsets: 1)" in verdict.because


def test_an_aborted_row_is_no_effect_but_was_seen():
    verdict = verdict_on(wrote(0), wrote(2, visibility=ABORTED), wrote(0, 2), wrote(1))
    assert anomalies(verdict) == {"lost": [2], "duplicate": [0], "regression": [0], "aborted_read": [2]}
    assert verdict.final == {"hello": 1, "world": 1}
    assert verdict.rows == 3
    assert verdict.because.endswith("and offset 2 ('hello' = 2) of an aborted transaction")


def test_an_aborted_row_that_nothing_explains_is_only_an_aborted_read():
    row = Observation(9, "x", 1, 0, 1, ABORTED)
    assert anomalies(verdict_on(wrote(0), wrote(1), row, wrote(2))) == {"aborted_read": [9]}


def test_a_precommitted_row_counts_and_was_early():
    verdict = verdict_on(wrote(0), wrote(1, visibility=PRECOMMITTED), wrote(2))
    assert verdict.guarantee == Guarantee.EXACTLY_ONCE
    assert anomalies(verdict) == {"precommitted_read": [1]}
    assert verdict.properties["no_precommitted_read"] == Outcome.VIOLATED
    assert verdict.because.endswith("a reader saw offset 1 ('world' = 1) before its transaction was decided")


@pytest.mark.parametrize("keyed", [False, True])
def test_a_hidden_row_is_unseen_and_not_lost(keyed):
    verdict = verdict_on(wrote(0), wrote(2), keyed=keyed, hidden=iter([wrote(1), wrote(1, 2), wrote(0)]))
    assert anomalies(verdict) == {"unseen": [1]}
    assert verdict.properties["no_loss"] == Outcome.UNKNOWN
    assert verdict.properties["no_duplicate"] == Outcome.HOLDS
    assert verdict.guarantee == Guarantee.UNKNOWN
    assert verdict.because == (
        "unknown, because an open transaction still hides 1 of 3 records, first offset 1 ('world' = 1): written by "
        "attempt 1 of batch 0"
    )


def test_hidden_rows_that_were_aborted_or_explain_nothing_hide_nothing():
    hidden = [wrote(1, visibility=ABORTED), Observation(2, "hello", 7, 0, 1)]
    assert anomalies(verdict_on(wrote(0), hidden=hidden)) == {"lost": [1, 2]}


def test_a_loss_is_a_loss_also_beside_hidden_rows():
    verdict = verdict_on(wrote(0), hidden=[wrote(1)])
    assert anomalies(verdict) == {"lost": [2], "unseen": [1]}
    assert verdict.guarantee == Guarantee.AT_MOST_ONCE


def test_an_overwritten_upsert_that_a_transaction_hides_is_not_yet_lost():
    verdict = verdict_on(wrote(1), wrote(2), wrote(0, 2), keyed=True, hidden=[wrote(2, 2)])
    assert anomalies(verdict) == {"unseen": [2], "regression": [0]}
    assert verdict.guarantee == Guarantee.UNKNOWN


def test_a_part_of_an_epoch_is_a_fractured_read():
    planned_batches = [PlannedBatch(0, 0, 2), PlannedBatch(1, 2, 3)]
    verdict = verdict_on(wrote(0), Reading("crash 1"), wrote(1), wrote(2), planned_batches=planned_batches)
    assert verdict.guarantee == Guarantee.EXACTLY_ONCE
    assert anomalies(verdict) == {"fractured_read": [0]}
    assert verdict.because.endswith("offset 0 ('hello' = 1) at crash 1 without the rest of its batch")


def test_each_reading_adds_what_it_sees_of_an_incomplete_epoch():
    planned_batches = [PlannedBatch(0, 0, 3)]
    assert verdict_on(wrote(2), END, END, wrote(0), END, wrote(1), planned_batches=planned_batches).fractured_read == (
        0,
        2,
    )
    assert verdict_on(wrote(2), wrote(0), wrote(1), END, planned_batches=planned_batches).fractured_read == ()
    assert verdict_on(wrote(2, visibility=ABORTED), planned_batches=planned_batches).fractured_read == ()


def test_a_reading_after_every_row_costs_no_more_than_the_rows():
    """Minutes, if every reading looked again at what an earlier one saw."""
    expected = counted(["a"] * 40_000)
    events = (event for record in expected for event in (Observation(*record, 0, 1), END))
    assert len(judge(expected, History(events, planned_batches=[PlannedBatch(0, 0, 40_000)])).fractured_read) == 39_999


def test_offsets_outside_of_any_epoch_are_not_fractured():
    assert (
        verdict_on(
            wrote(0), wrote(1), planned_batches=[PlannedBatch(0, 0, 1), PlannedBatch(1, 1, 1), PlannedBatch(2, 5, 9)]
        ).fractured_read
        == ()
    )


def test_offsets_may_have_gaps():
    expected = [Record(-5, "a", 1), Record(10, "b", 1), Record(11, "a", 2)]
    rows = [Observation(*record, 0, 1) for record in expected]
    verdict = verdict_on(rows[0], rows[0], END, rows[2], Observation(0, "a", 1, 0, 1), expected=expected)
    assert anomalies(verdict) == {"lost": [10], "duplicate": [-5], "unexpected": [0]}
    verdict = verdict_on(
        *rows[:2], END, rows[2], expected=expected, planned_batches=[PlannedBatch(0, -9, 5), PlannedBatch(1, 9, 12)]
    )
    assert anomalies(verdict) == {"fractured_read": [10]}


@pytest.mark.parametrize("offsets", [(0, 0), (1, 0), (0, 1, 1)])
def test_expected_offsets_must_increase(offsets):
    with pytest.raises(InvalidInput, match=rf"Expected record {len(offsets)}: .*{offsets[-1]} .*above"):
        judge([Record(offset, "a", 1) for offset in offsets], History([]))


@pytest.mark.parametrize(
    "planned_batches",
    [
        [PlannedBatch(0, 0, 2), PlannedBatch(1, 1, 3)],
        [PlannedBatch(0, 2, 3), PlannedBatch(1, 0, 1)],
        [PlannedBatch(0, 2, 1)],
    ],
)
def test_planned_batches_must_be_sorted_and_apart(planned_batches):
    with pytest.raises(InvalidInput, match=f"Planned batch {len(planned_batches)}: "):
        judge(HELLO, History([], planned_batches=planned_batches))


def test_offsets_without_a_record_may_be_of_any_size_and_come_often(monkeypatch):
    """So often that the repeated ones are taken out on the way."""
    monkeypatch.setattr("labkit.core.judge_large._Cases.room", 8)
    offsets = [(7, 9, -4, 5, 2**70, 3, -(2**63))[number % 7] for number in range(100)]
    rows = [Observation(offset, "hello", 1, 0, number) for number, offset in enumerate(offsets)]
    verdict = verdict_on(*(wrote(offset) for offset in range(3)), *rows)
    assert verdict.unexpected == (-(2**63), -4, 3, 5, 7, 9, 2**70)
    assert [(case.offset, case.incarnation) for case in verdict.witnesses["unexpected"]] == [
        (offset, offsets.index(offset)) for offset in verdict.unexpected
    ]


@pytest.mark.parametrize(
    ("expected", "row"),
    [([Record(0, "a", 2**70)], wrote(0)), (HELLO, wrote(0, attempt=2**70)), (HELLO, wrote(0, batch=2**70))],
)
def test_numbers_beyond_64_bits_are_refused(expected, row):
    with pytest.raises(InvalidInput, match="64 bits"):
        judge(expected, History([row]))


def test_ten_witnesses_are_kept_and_the_first_offset_is_among_them():
    expected = counted(["a"] * 30)
    rows = [Observation(*record, 0, attempt) for attempt in (1, 2) for record in reversed(expected)]
    verdict = verdict_on(*rows, expected=expected)
    assert verdict.duplicate == tuple(range(30))
    assert [case.offset for case in verdict.witnesses["duplicate"]] == list(range(10))
    assert [case.offset for case in verdict.witnesses["regression"]] == list(range(28, 18, -1))
    assert "first offset 0 ('a' = 1)" in verdict.because


def test_json_has_the_keys_of_a_verdict_and_survives_json():
    rows = (wrote(0), wrote(2), Reading("crash 1"), wrote(0, 2), Observation(9, "x", 1, 0, 2, ABORTED))
    plain = verdict_on(*rows, planned_batches=[PlannedBatch(0, 0, 3)]).to_json()
    assert set(plain) == {"guarantee", "properties", *LISTS, "because", "final", "rows", "witnesses"}
    assert set(plain["witnesses"]) == set(LISTS)
    assert plain == json.loads(json.dumps(plain))
    assert type(plain["guarantee"]) is str
    assert plain["lost"] == [1]
    assert list(plain["final"]) == ["hello"]
    assert plain["witnesses"]["duplicate"][0]["earlier"]["attempt"] == 1
    assert plain["witnesses"]["fractured_read"][0]["moment"] == "crash 1"


def test_the_final_values_are_a_mapping_in_the_order_of_the_keys():
    expected = counted(["b", "c", "a", "b"])
    rows = [Observation(*record, 0, 1) for record in expected]
    final = verdict_on(*rows, Observation(9, "aa", 2**70, 0, 1), expected=expected).final
    values = {"a": 1, "aa": 2**70, "b": 2, "c": 1}
    assert final == values == dict(final)
    assert list(final.items()) == list(values.items())
    assert (len(final), final["b"], final.get("d"), 5 in final, repr(final)) == (4, 2, None, False, repr(values))


def test_text_is_a_short_block():
    expected = counted(["a"] * 12)
    verdict = verdict_on(expected=expected)
    assert verdict.text().splitlines() == [
        "guarantee             at-most-once",
        f"because               {verdict.because}",
        "no_loss               violated  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (12 in all)",
        *(f"{name:<21} holds" for name in list(ANOMALY)[1:]),
        "unseen",
        "rows                  0",
        "final",
    ]


def test_a_key_may_hold_anything():
    expected = counted(["{x} {0} %s\n" + "y" * 1000] * 2)
    verdict = verdict_on(Observation(*expected[0], 0, 1), expected=expected)
    assert "first offset 1 ('{x} {0} %s\\n" in verdict.because
    assert len(verdict.because) < 300
    assert "\n" not in verdict.because


def test_a_verdict_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        verdict_on().rows = 1


def test_what_satisfies_what():
    satisfied = {held.value: {asked.value for asked in Guarantee if satisfies(held, asked)} for held in Guarantee}
    assert satisfied == {
        "exactly-once": {"exactly-once", "at-least-once", "at-most-once", "none"},
        "at-least-once": {"at-least-once", "none"},
        "at-most-once": {"at-most-once", "none"},
        "none": {"none"},
        "unknown": {"unknown"},
    }


# Size

FIVE_MILLION = """
import resource, sys
from collections import deque
from labkit.core.judge import judge
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record
N, KEYS, keyed = 5_000_000, [f"word {n}" for n in range(1000)], sys.argv[2] == "upserts"
order, few, unexpected = sys.argv[1].partition(" ")[0], "few" in sys.argv[1], "unexpected" in sys.argv[1]
step = 3 if "gaps" in sys.argv[1] else 1
def record(i):
    return i * step, KEYS[i % 1000] if few else f"word {i}", i // 1000 if few else 1
def expected():
    return (Record(*record(i)) for i in range(1 if unexpected else N))
def events():
    for j in range(N):
        i = j * 2_860_486_313 % N if order == "scattered" else j  # each one once
        if i != 7:
            yield Observation(*record(i), i // 100_000, 1)
    yield Reading("end")
def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
deque(expected(), 0), deque(events(), 0)
making = seconds()
planned = [PlannedBatch(batch, batch * 100_000 * step, (batch + 1) * 100_000 * step) for batch in range(50)]
verdict = judge(expected(), History(events(), keyed=keyed, planned_batches=planned))
if unexpected:
    assert not verdict.lost and len(verdict.unexpected) == N - 2 and verdict.unexpected[-1] == N - 1
else:
    assert not verdict.unexpected and not verdict.duplicate
    assert len(verdict.fractured_read) == 99_999 and (keyed or verdict.lost == (7 * step,))
    assert order == "scattered" or verdict.lost == (() if keyed and few else (7,))
    assert bool(verdict.regression) == (order == "scattered" and few)
assert len(verdict.final) == (1000 if few else N - 1)
assert order == "scattered" or verdict.final["word 8"] == (4999 if few else 1)
assert verdict.rows == (len(verdict.final) if keyed else N - 1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, seconds() - 2 * making, making)
"""


# The dearest of each kind; what a large history gives is compared with the definition in test_judge_definitions.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "kind"),
    [pytest.param("scattered few gaps", "upserts", marks=pytest.mark.variant), ("scattered unexpected", "rows")],
)
def test_five_million_records_fit_into_a_gigabyte(case, kind):
    """The observations are made while they are judged; what this costs is measured before."""
    command = [sys.executable, "-c", FIVE_MILLION, case, kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kilobytes, seconds, making = map(float, done.stdout.split())
    print(f"{case}, {kind}: {kilobytes / 1024:.0f} MB, {seconds:.1f} s, and {making:.1f} s to make the observations")
    assert kilobytes < 1024 * 1024
