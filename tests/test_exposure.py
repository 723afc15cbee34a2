"""How long readers could read something wrong: against a count that looks at every instant anew, and by examples."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import counted

from labkit.core.exposure import MOST_KEYS, Exposure, KeyExposure, Sight, Span, exposure
from labkit.core.records import Observation, Visibility

ABORTED, COMMITTED = Visibility.ABORTED, Visibility.COMMITTED
HELLO = counted(["hello", "world", "hello", "hello"])


def wrote(offset, visibility=COMMITTED, value=None):
    row = Observation(*HELLO[offset], 0, 1, visibility)
    return row if value is None else row._replace(value=value)


def at(moment):
    return Span.exactly(moment)


def once(row, moment, goes=False):
    span = at(moment)
    return Sight(row, span, span, goes)


def of_hello(*sights, end=100, keyed=False, **more):
    return exposure(HELLO, sights, at(end), keyed=keyed, **more).keys["hello"]


def test_nothing_is_wrong_of_a_run_without_a_failure():
    found = of_hello(*(once(wrote(offset), offset) for offset in range(4)))
    assert found == KeyExposure(Span(0, 0), Span(0, 0))


def test_a_row_that_is_there_twice_is_wrong_up_to_the_end():
    rows = [once(wrote(0), 1), once(wrote(0), 7), once(wrote(2), 8), once(wrote(3), 9)]
    assert of_hello(*rows, end=50) == KeyExposure(Span(43, 43), Span(0, 0), lasts=True)


def test_a_value_that_goes_back_is_wrong_until_the_newest_is_there_again():
    rows = [once(wrote(n), when) for n, when in ((0, 1), (2, 2), (0, 5), (2, 9), (3, 9))]
    assert of_hello(*rows, keyed=True).wrong == Span(4, 4)


def test_a_later_row_without_an_earlier_one_is_wrong_until_that_comes():
    rows = [once(wrote(2), 3), once(wrote(0), 8)]
    assert of_hello(*rows) == KeyExposure(Span(5, 5), Span(0, 0), missing=1)


def test_a_row_that_is_taken_back_was_wrong_while_it_was_there():
    rows = [once(wrote(0), 1), once(wrote(2, ABORTED), 3), once(wrote(2, ABORTED), 6, goes=True)]
    assert of_hello(*rows).wrong == Span(3, 3)


@pytest.mark.parametrize("change", [{"key": "nobody"}, {"value": 7}])
def test_a_hidden_row_that_no_input_explains_holds_nothing_right_back(change):
    hidden = wrote(3)._replace(**change)
    shown = [once(wrote(offset), offset) for offset in range(3)]
    assert of_hello(*shown, held=[hidden], ready={3: at(5)}).held == Span(0, 0)
    assert of_hello(*shown, held=[wrote(3)], ready={3: at(5)}).held == Span(95, 95)


def test_an_early_row_that_commits_is_not_wrong():
    rows = [once(wrote(0, Visibility.PRECOMMITTED), 1)]
    assert of_hello(*rows).wrong == Span(0, 0)


def test_bounds_are_kept_apart_and_what_is_unknown_stays_unknown():
    rows = [Sight(wrote(0), Span(1, 2)), Sight(wrote(0), Span(4, 6))]
    found = of_hello(*rows, end=10)
    assert found.wrong == Span(4, 6)
    assert found.held is None
    assert of_hello(Sight(wrote(0), at(1)), Sight(wrote(0), None)).wrong is None
    assert exposure(HELLO, [once(wrote(0), 1)] * 2, None, keyed=False).keys["hello"].wrong is None


def test_a_wait_for_several_rows_at_once_is_one_wait():
    rows = [Sight(wrote(0), at(10), at(2)), Sight(wrote(2), at(10), at(4)), Sight(wrote(3), at(30), at(25))]
    assert of_hello(*rows).held == Span(13, 13)
    overlapping = [Sight(wrote(0), at(10), at(2)), Sight(wrote(2), at(12), at(4))]
    assert of_hello(*overlapping).held == Span(10, 10)


def test_a_row_that_was_ready_before_its_writer_died_has_waited_since_then():
    rows = [Sight(wrote(0), at(30), at(29))]
    assert of_hello(*rows, ready={0: Span(3, 4)}).held == Span(26, 27)


def test_a_row_that_is_held_at_the_end_has_waited_up_to_the_end():
    found = of_hello(end=20, ready={0: at(5)}, held=[wrote(0)])
    assert found == KeyExposure(Span(0, 0), Span(15, 15), missing=3)


def test_the_sentence_names_the_worst_key_and_what_it_paid():
    rows = [once(wrote(0), 1), once(wrote(0), 7), Sight(wrote(1), at(9), at(8.5))]
    found = exposure(HELLO, rows, at(10), keyed=False)
    assert found.sentence() == (
        "a reader of 'hello' could have read a wrong value for 3.000 s up to the end, and 2 records of it "
        "never appeared; right values of it were held back for 0.000 s"
    )
    steps = Exposure({"a": KeyExposure(Span(2, 5), None)}, "steps")
    assert steps.sentence() == (
        "a reader of 'a' could have read a wrong value for 2 to 5 steps; right values of it were held back for an "
        "unknown time"
    )
    still = exposure(HELLO[1:2], [Sight(wrote(1), at(9), at(8.5))], at(10), keyed=False)
    assert still.sentence() == ("no key showed a wrong value; right values of 'world' were held back for 0.500 s")
    plain = found.to_json()
    assert plain == json.loads(json.dumps(plain))
    assert plain["keys"]["world"]["held_back"] == [0.5, 0.5]
    many = Exposure({f"{n}": KeyExposure(at(n), at(0)) for n in range(MOST_KEYS + 5)})
    listed = many.to_json()["keys"]
    assert len(listed) == MOST_KEYS
    assert str(MOST_KEYS + 4) in listed
    assert "4" not in listed
    assert Exposure({}).sentence() == "there is no key to read"


# Every instant anew


@st.composite
def lives(draw):
    """Rows of three records of one key that come, and some of which go; (row, from, to)."""
    found = []
    for _ in range(draw(st.integers(0, 6))):
        offset = draw(st.sampled_from([0, 2, 3]))
        begin, goes = draw(st.integers(0, 20)), draw(st.booleans())
        row = wrote(offset, ABORTED if goes else COMMITTED, draw(st.sampled_from([None, None, 99])))
        end = draw(st.integers(begin + 1, 30)) if goes else 40
        found.append((row, begin, end))
    return found


@settings(max_examples=300)
@given(lives())
def test_rows_are_wrong_at_every_instant_at_which_they_are_no_beginning(found):
    changes = [(begin, 0, once(row, begin)) for row, begin, _ in found]
    changes += [(end, 1, once(row, end, True)) for row, _, end in found if end < 40]
    changes.sort(key=lambda change: change[:2])
    wrong = 0
    due = [wrote(offset) for offset in (0, 2, 3)]
    for instant in range(40):
        there = [row for row, begin, end in found if begin <= instant < end]
        beginnings = [due[:length] for length in range(4)]
        wrong += sorted(there) not in beginnings
    assert of_hello(*(change for _, _, change in changes), end=40).wrong == Span(wrong, wrong)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from([0, 2, 3]), st.integers(1, 5)), max_size=8))
def test_upserts_are_wrong_at_every_instant_at_which_an_older_value_is_there(steps):
    moment, wrong, sights, there, best = 0, 0, [], -1, -1
    for offset, pause in steps:
        sights.append(once(wrote(offset), moment))
        there, best = offset, max(best, offset)
        wrong += pause * (there < best)
        moment += pause
    assert of_hello(*sights, end=moment, keyed=True).wrong == Span(wrong, wrong)


@pytest.mark.parametrize("keyed", [False, True])
def test_rows_of_unknown_keys_are_shown_with_the_others(keyed):
    odd = Observation(9, "other", 1, 0, 1)
    found = exposure(HELLO, [once(odd, 4)], at(9), keyed=keyed).keys["other"]
    assert found.wrong == Span(5, 5)
    assert found.lasts
