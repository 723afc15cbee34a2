"""The explanation agrees with all failure-free runs of small inputs, with the judge, and names the right event."""

import json
import random
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from histories import ROWS, random_histories, small_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import counted
from plain_runs import Input, failure_free, still_hidden, tokens

from labkit.core.errors import InvalidInput
from labkit.core.explanation import explain, judge_and_explain, settled
from labkit.core.judge import Guarantee, Outcome, judge
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility
from labkit.core.verdict import LISTS

SMALL = [Record(*row) for row in ROWS[:3]]
BATCHES = (PlannedBatch(0, 0, 2), PlannedBatch(1, 2, 3))


# Small histories: all failure-free runs are made and compared


@cache
def all_runs(longest, keyed, drawn):
    """Of every choice of outcomes, its records, all its runs, and what each of them begins with."""
    found = []
    for values in product(*[(each.value, *drawn.get(each.offset, ())) for each in SMALL]):
        choices = [each._replace(value=value) for each, value in zip(SMALL, values, strict=True)]
        runs = set(failure_free(Input(choices, BATCHES, keyed), longest))
        begun = {run[:length] for run in runs for length in range(longest + 1)}
        found.append((choices, runs, begun))
    return found


class Drawn(dict):
    """Outcomes by offset, as an argument of something that is remembered."""

    def __hash__(self):
        return hash(tuple(self.items()))


def by_hand(history, drawn):
    """Whether a failure-free run gives a history, and how long the shortest prefix is that none gives."""
    seen = tuple(tokens(history))
    if not seen:
        return Outcome.UNKNOWN, 0
    tried = all_runs(len(seen) + len(SMALL), history.keyed, drawn)
    for length in range(1, len(seen) + 1):
        if not any(seen[:length] in begun for _, _, begun in tried):
            return Outcome.VIOLATED, length
    whole = any(seen in runs and not still_hidden(history, choices, seen) for choices, runs, _ in tried)
    return (Outcome.HOLDS if whole else Outcome.VIOLATED), len(seen)


@pytest.mark.parametrize("drawn", [Drawn(), Drawn({1: (7,)})], ids=["fixed", "drawn"])
@pytest.mark.parametrize("hidden", [(), (Observation(1, "a", 2, 0, 9),)])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_it_agrees_with_all_failure_free_runs_on_every_small_history(length, keyed, hidden, drawn):
    for events in small_cases(length):
        history = History(events, keyed, BATCHES, hidden)
        found = explain(SMALL, history, drawn)
        assert (found.exists, found.events) == by_hand(history, drawn), events


@settings(max_examples=300)
@given(random_histories())
def test_a_failure_free_run_exists_just_where_the_judge_finds_nothing(case):
    expected, history = case
    verdict, found = judge(expected, history), explain(expected, history)
    clean = verdict.guarantee is Guarantee.EXACTLY_ONCE and not any(getattr(verdict, name) for name in LISTS)
    assert (found.exists is Outcome.HOLDS) == clean
    assert (found.exists is Outcome.UNKNOWN) == (not history.events)


@settings(max_examples=100)
@given(random_histories(), st.sampled_from([1, 3, 100]))
def test_in_one_pass_both_say_what_they_say_alone(monkeypatch_module, case, large):
    expected, history = case
    monkeypatch_module.setattr("labkit.core.explanation.LARGE", large)
    events, hidden = iter(history.events), iter(history.hidden)
    once = History(events, history.keyed, history.planned_batches, hidden)
    verdict, found = judge_and_explain(iter(expected), once)
    assert verdict == judge(expected, history)
    assert found == explain(expected, history)
    assert not [*events, *hidden]


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


# Long histories: the event that was put in is the one that is named

FAULTS = st.sampled_from(["none", "twice", "gone", "wrong", "aborted", "early", "back"])


@st.composite
def long_histories(draw):
    """A failure-free run of many records, one fault in it, and the event after which no failure-free run is left."""
    seed, keyed, fault = draw(st.integers(0, 10**6)), draw(st.booleans()), draw(FAULTS)
    chance, size = random.Random(seed), draw(st.integers(20, 600))
    expected = counted(chance.choice("abcdefgh") for _ in range(size))
    planned = [PlannedBatch(n, n * 10, min(n * 10 + 10, size)) for n in range(-(-size // 10))]
    events = []
    for plan in planned:
        events += interleaved(expected[plan.start : plan.end], chance)
        events += [Reading(f"after {plan.batch}")] * chance.randint(0, 1)
    events.append(Reading("end"))
    rows = [place for place, event in enumerate(events) if isinstance(event, Observation)]
    at = chance.choice(rows)
    row, due = events[at], at + 1
    if fault == "twice":
        events.insert(at + 1, row)
        due = None if keyed else at + 2
    elif fault == "gone":
        del events[at]
        later = [
            place
            for place in range(at, len(events))
            if (events[place][1:2] == (row.key,) and not keyed) or len(events[place]) == 1
        ]
        # Without its only row a last batch could still come, until the history ends.
        alone = planned[-1].start == row.offset == size - 1
        due = len(events) if alone else later[0] + 1
    elif fault == "wrong":
        events[at] = row._replace(value=-1)
    elif fault == "aborted":
        events[at] = row._replace(visibility=Visibility.ABORTED)
    elif fault == "early":
        events[at] = row._replace(visibility=Visibility.PRECOMMITTED)
    elif fault == "back":
        older = [place for place in rows if place < at and events[place].key == row.key]
        if not older:
            return expected, History(events, keyed, planned), None
        events.insert(at + 1, events[older[0]])
        due = at + 2
    else:
        due = None
    return expected, History(events, keyed, planned), due


def interleaved(records, chance):
    """The rows of a batch in any order that keeps the order of each key."""
    lanes = [[each for each in records if each.key == key] for key in "abcdefgh"]
    while any(lanes):
        lane = chance.choice([lane for lane in lanes if lane])
        yield Observation(*lane.pop(0), 0, 1)


@settings(max_examples=300)
@given(long_histories())
def test_the_event_that_was_put_in_is_named(case):
    expected, history, due = case
    found = explain(expected, history)
    if due is None:
        assert found.exists is Outcome.HOLDS
        assert found.events == len(history.events)
    else:
        assert found.exists is Outcome.VIOLATED
        assert found.events == due


# Sentences

HELLO = counted(["hello", "world", "hello"])
PLANNED = (PlannedBatch(0, 0, 2), PlannedBatch(1, 2, 3))


def wrote(offset, attempt=1, visibility=Visibility.COMMITTED, value=None):
    row = Observation(*HELLO[offset], 0, attempt, visibility)
    return row if value is None else row._replace(value=value)


FIRST_TWO = (wrote(0), wrote(1), Reading("crash 1"))

SAID = {
    "appears a second time": (*FIRST_TWO, wrote(0, 2), wrote(1, 2)),
    "appears before offset 0 ('hello' = 1), the next record of its key": (wrote(2), wrote(0)),
    "with offset 0 ('hello' = 1) and without offset 1 ('world' = 1)": (wrote(0), Reading("crash 1")),
    "at the end offset 2 ('hello' = 2) is missing": FIRST_TWO,
    "is visible, but the input requires 'hello' = 1": (wrote(0, value=5),),
    "is visible, but no input explains it": (Observation(9, "x", 1, 0, 1),),
    "is read although its transaction was aborted": (wrote(0, visibility=Visibility.ABORTED),),
    "is read before its transaction is decided": (wrote(0, visibility=Visibility.PRECOMMITTED),),
}


@pytest.mark.parametrize("said", SAID)
def test_what_is_said_of_rows(said):
    found = explain(HELLO, History(SAID[said], False, PLANNED))
    assert found.because.endswith(said)


def test_the_whole_sentence():
    events = (*FIRST_TWO, wrote(0, 2), wrote(1, 2))
    found = explain(HELLO, History(events, False, PLANNED))
    assert found.because.startswith("a failure-free run gives the first 2 rows, but ")
    assert found.because.endswith(
        "(after crash 1): offset 0 ('hello' = 1), written by attempt 2 of batch 0, appears a second time"
    )
    assert "(after crash 1, at 2.31 s):" in replace(found, at="at 2.31 s").because
    found = explain(HELLO, History((wrote(0), Reading("x")), False, PLANNED))
    assert found.because.startswith("a failure-free run gives the first row, but ")
    assert found.because.endswith(
        ": the reading 'x' finds only a part of batch 0, with offset 0 ('hello' = 1) and without offset 1 ('world' = 1)"
    )
    found = explain(HELLO, History((wrote(0, value=5),), False, PLANNED))
    assert found.because.startswith("no failure-free run looks like this one: offset 0 ('hello' = 5), ")


def test_an_upsert_that_comes_back_is_named_with_what_was_there():
    found = explain(HELLO, History([wrote(0), wrote(2), wrote(1), wrote(0, 2)], True))
    assert found.because.endswith(
        "offset 0 ('hello' = 1), written by attempt 2 of batch 0, "
        "appears again after offset 2 ('hello' = 2), which is newer"
    )
    assert (found.rows, found.events, found.record) == (3, 4, HELLO[0])


def test_an_upsert_that_is_repeated_stands_for_no_other_of_its_batch():
    """Two rows came and two were planned, and yet one is missing."""
    events = [wrote(2), wrote(2, 2), Reading("crash 1"), wrote(1)]
    found = explain(HELLO, History(events, True, [PlannedBatch(0, 1, 3)]))
    assert (found.exists, found.events) == (Outcome.VIOLATED, 3)


def test_a_value_that_was_drawn_is_explained_and_a_second_draw_is_not():
    rows = [wrote(0, value=6), wrote(1)]
    found = explain(HELLO[:2], History(rows, True), {0: (6, 7)})
    assert found.exists is Outcome.HOLDS
    assert found.because.endswith("6 for offset 0")
    assert judge(HELLO[:2], History(rows, True)).unexpected == (0,)
    twice = [*rows, Reading("crash 1"), wrote(0, 2, value=7)]
    found = explain(HELLO[:2], History(twice, True), {0: (6, 7)})
    assert found.because.endswith(
        "(after crash 1): offset 0 ('hello' = 7), written by attempt 2 of batch 0, is visible, but an earlier row has "
        "6: in one run, every row of a record has the same value"
    )
    assert found.drawn == {}


def test_the_expected_value_counts_as_drawn_too():
    rows = [wrote(1), wrote(0), wrote(0, 2, value=6)]
    assert explain(HELLO[:2], History(rows, True), {0: (6,)}).events == 3


def test_hidden_rows_are_named_at_the_end():
    found = explain(HELLO, History([wrote(0), wrote(1)], hidden=[wrote(2, 3)]))
    assert found.because.endswith(
        "at the end an open transaction still holds offset 2 ('hello' = 2), written by attempt 3 of batch 0"
    )


def test_nobody_looked():
    found = explain(HELLO, History([]))
    assert found.exists is Outcome.UNKNOWN
    assert "no observations" in found.because


def test_json_survives_json():
    found = explain(HELLO, History([*FIRST_TWO, wrote(0, 2)]))
    plain = found.to_json()
    assert plain == json.loads(json.dumps(plain))
    assert plain["failure_free_run"] == "violated"
    assert plain["row"] == {
        "offset": 0, "key": "hello", "value": 1, "batch": 0, "attempt": 2,
    }  # fmt: skip
    assert plain["after"] == "crash 1"


@pytest.mark.parametrize("ask", [explain, judge_and_explain])
def test_what_the_judge_refuses_is_refused(ask):
    with pytest.raises(InvalidInput, match="Expected record 2"):
        ask([HELLO[1], HELLO[0]], History([]))
    with pytest.raises(InvalidInput, match="Planned batch 1"):
        ask(HELLO, History([], False, [PlannedBatch(0, 2, 1)]))
    with pytest.raises(InvalidInput, match="64 bits"):
        ask([Record(0, "a", 2**70)], History([]))


# Size

FIVE_MILLION = """
import resource, sys, time
from labkit.core.explanation import judge_and_explain
from labkit.core.judge import judge
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record
N, KEYS = 5_000_000, [f"word {n}" for n in range(1000)]
def record(i):
    return i, KEYS[i % 1000], i // 1000
def expected():
    return (Record(*record(i)) for i in range(N))
def events():
    for i in range(N):
        yield Observation(*record(i), i // 100_000, 1)
    yield Reading("end")
def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
planned = [PlannedBatch(n, n * 100_000, (n + 1) * 100_000) for n in range(N // 100_000)]
history = History(events(), planned_batches=planned)
begun = seconds()
if sys.argv[1] == "explained":
    verdict, found = judge_and_explain(expected(), history)
    assert found.exists == "holds" and found.rows == N
else:
    verdict = judge(expected(), history)
assert verdict.guarantee == "exactly-once", verdict.because
print(seconds() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.variant
def test_five_million_observations_cost_at_most_twice_the_judge():
    """A clean history is the dearest: the explanation looks at it up to its end. Both make their own observations."""

    def measured(how):
        command = [sys.executable, "-c", FIVE_MILLION, how]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return map(float, done.stdout.split())

    alone, its_memory = measured("alone")
    both, memory = measured("explained")
    explained = f"{both:.1f} s and {memory / 1024:.0f} MB with the explanation"
    print(f"{alone:.1f} s and {its_memory / 1024:.0f} MB alone, {explained}")
    assert both < 2 * alone
    assert memory < 1024 * 1024


def test_a_verdict_is_about_the_run_that_showed_its_last_outcomes():
    expected = [Record(0, "pen", 10), Record(1, "book", 20), Record(2, "lamp", 30)]
    events = [
        Observation(0, "pen", 10, 0, 1),
        Reading("crash 1"),
        Observation(0, "pen", 11, 0, 2),
        Observation(1, "book", 99, 0, 2),
    ]
    found = settled(expected, events, {0: (10, 11), 1: (20, 21)})
    # The second shows what is no outcome, the third shows nothing: both as expected.
    assert [record.value for record in found] == [11, 20, 30]
