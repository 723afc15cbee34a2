"""Both judges find what was put into a history and no other, agree to the last witness, and with the definitions."""

import pytest
from histories import ROWS, random_histories, small_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import anomalies, counted
from judges import judge_by_both as judge

import labkit.core.judge
from labkit.core.judge import ANOMALY, Guarantee, Outcome
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility
from labkit.core.verdict import LISTS

ABORTED, PRECOMMITTED = Visibility.ABORTED, Visibility.PRECOMMITTED
END = Reading("end")

# Properties: what was put in comes out

FATES = st.sampled_from(["kept", "kept", "kept", "dropped", "repeated", "aborted", "leaked"])


@st.composite
def broken_histories(draw):
    """Expected records, a history broken on purpose, and the anomalies that were put in."""
    keyed = draw(st.booleans())
    expected = counted(draw(st.lists(st.sampled_from("abcd"), max_size=12)))
    put_in = {name: set() for name in LISTS if name != "regression"}
    put_in["regression"] = []
    lanes = []
    for key in sorted({record.key for record in expected}):
        records = [record for record in expected if record.key == key]
        lane, effects, seen = [], [], []
        for record in records:
            fate = draw(FATES)
            visibility = {"aborted": ABORTED, "leaked": PRECOMMITTED}.get(fate, Visibility.COMMITTED)
            lane += [Observation(*record, 0, 1, visibility)] * {"dropped": 0, "repeated": 2}.get(fate, 1)
            put_in["aborted_read"] |= {record.offset} if fate == "aborted" else set()
            put_in["precommitted_read"] |= {record.offset} if fate == "leaked" else set()
            put_in["duplicate"] |= {record.offset} if fate == "repeated" and not keyed else set()
            seen += [record.offset] if fate != "dropped" else []
            effects += [record.offset] if fate not in ("dropped", "aborted") else []
        if effects and draw(st.booleans()):
            back = draw(st.sampled_from([record for record in records if record.offset in effects]))
            lane.append(Observation(*back, 0, 2))
            put_in["duplicate"] |= set() if keyed else {back.offset}
            put_in["regression"] += [back.offset] if back.offset < max(seen) else []
            effects.append(back.offset)
        final = effects[-1] if effects else -1
        offsets = {record.offset for record in records}
        put_in["lost"] |= {offset for offset in offsets if offset > final} if keyed else offsets - set(effects)
        lanes.append(lane)
    for number in range(draw(st.integers(0, 2))):
        lanes.append([Observation(100 + number, f"unknown {number}", 1, 0, 1)])
        put_in["unexpected"].add(100 + number)
    events = []
    while any(lanes):  # rows of different keys may come in any order, rows of a key keep theirs
        events.append(draw(st.sampled_from([lane for lane in lanes if lane])).pop(0))
    return expected, History([*events, END], keyed=keyed), put_in


@given(broken_histories())
def test_exactly_the_anomalies_put_in_come_out(case):
    expected, history, put_in = case
    verdict = judge(expected, history)
    found = anomalies(verdict)
    assert sorted(found.pop("regression", [])) == sorted(put_in.pop("regression"))
    assert found == {name: sorted(offsets) for name, offsets in put_in.items() if offsets}
    lost, extra = (bool(put_in["lost"]), bool(put_in["duplicate"] or put_in["unexpected"]))
    held = {(False, False): "exactly-once", (False, True): "at-least-once", (True, False): "at-most-once"}
    assert verdict.guarantee == held.get((lost, extra), "none")


# Properties: a third judge without witnesses, written from the definitions alone: it counts, it remembers nothing


def plain_judge(expected, history):
    events, keyed = list(history.events), history.keyed
    rows = [event for event in events if isinstance(event, Observation)]
    effects = [row for row in rows if row.visibility != ABORTED]
    hidden = {Record(*row[:3]) for row in history.hidden if row.visibility != ABORTED}
    final = {row.key: Record(*row[:3]) for row in effects}

    def times(record):
        return [Record(*row[:3]) for row in effects].count(record)

    def missing(record):
        if not keyed:
            return times(record) == 0
        last = final.get(record.key)
        return last not in expected or last.offset < record.offset

    regression = []
    for place, row in enumerate(rows):
        before = [Record(*r[:3]) for r in rows[:place] if r.key == row.key]
        known = [r.offset for r in before if r in expected]
        if Record(*row[:3]) in expected and known and row.offset < max(known) and row.offset not in regression:
            regression.append(row.offset)

    fractured = set()
    for place, event in enumerate(events):
        if isinstance(event, Reading):
            visible = {Record(*e[:3]) for e in events[:place] if e in effects} & set(expected)
            for plan in history.planned_batches:
                planned = {record for record in expected if plan.start <= record.offset < plan.end}
                if planned & visible != planned:
                    fractured |= {record.offset for record in planned & visible}

    looked = bool(events)
    return {
        "lost": [r.offset for r in expected if looked and missing(r) and r not in hidden],
        "duplicate": [r.offset for r in expected if not keyed and times(r) > 1],
        "regression": regression,
        "aborted_read": sorted({row.offset for row in rows if row.visibility == ABORTED}),
        "precommitted_read": sorted({row.offset for row in rows if row.visibility == PRECOMMITTED}),
        "fractured_read": sorted(fractured),
        "unexpected": sorted({row.offset for row in effects if Record(*row[:3]) not in expected}),
        "unseen": [r.offset for r in expected if r in hidden and (missing(r) or times(r) == 0)],
        "final": {key: final[key].value for key in sorted(final)},
        "rows": len(final) if keyed else len(effects),
    }


@settings(max_examples=200)
@given(random_histories())
def test_the_judges_agree_with_the_definitions(case):
    expected, history = case
    check_against_the_definitions(expected, history)


def check_against_the_definitions(expected, history):
    verdict = judge(expected, history)
    assert {name: getattr(verdict, name) for name in ("final", "rows")} | {
        name: list(getattr(verdict, name)) for name in LISTS
    } == plain_judge(expected, history)
    assert list(verdict.final) == sorted(verdict.final)
    for name in LISTS:
        assert [w.offset for w in verdict.witnesses[name]] == list(getattr(verdict, name))[:10]


@pytest.mark.parametrize("hidden", [[], [Observation(1, "a", 2, 0, 9)]])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_judges_agree_on_every_small_case(length, keyed, hidden):
    expected = [Record(*row) for row in ROWS[:3]]
    planned_batches = [PlannedBatch(0, 0, 2), PlannedBatch(1, 2, 3)]
    for events in small_cases(length):
        history = History(events, keyed=keyed, planned_batches=planned_batches, hidden=hidden)
        check_against_the_definitions(expected, history)


@pytest.mark.parametrize("records", [99, 100, 101])
@pytest.mark.parametrize("events", [99, 100, 101])
def test_the_large_judge_is_taken_from_a_size_on_and_no_row_is_missed(monkeypatch, records, events):
    taken = []
    judge_large = labkit.core.judge.judge_large

    def spy(expected, history):
        taken.append(True)
        return judge_large(expected, history)

    monkeypatch.setattr("labkit.core.judge.judge_large", spy)
    expected = counted(["a"] * records)
    rows = [Observation(n, "a", n + 1, 0, 1) for n in range(events)]
    verdict = labkit.core.judge.judge(expected, History(rows), large=100)
    assert bool(taken) == (records >= 100 or events >= 100)
    assert verdict.rows == events
    assert len(verdict.lost) == max(records - events, 0)
    assert len(verdict.unexpected) == max(events - records, 0)


@given(random_histories())
def test_a_guarantee_follows_from_lost_and_extra_alone(case):
    verdict = judge(*case)
    extra = verdict.duplicate or verdict.unexpected
    looked = bool(case[1].events)
    expected = {
        Guarantee.UNKNOWN: not looked or (not verdict.lost and bool(verdict.unseen)),
        Guarantee.NONE: bool(verdict.lost and extra),
        Guarantee.AT_MOST_ONCE: bool(verdict.lost and not extra),
        Guarantee.AT_LEAST_ONCE: looked and not verdict.lost and not verdict.unseen and bool(extra),
        Guarantee.EXACTLY_ONCE: looked and not verdict.lost and not verdict.unseen and not extra,
    }
    assert [held for held in expected if expected[held]] == [verdict.guarantee]
    for name, anomaly in ANOMALY.items():
        assert (verdict.properties[name] == Outcome.VIOLATED) == bool(getattr(verdict, anomaly))
