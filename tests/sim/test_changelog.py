"""The changelog: known counts, equality with the batch query at every prefix, and what faults make of each encoding."""

from collections import Counter
from functools import partial

import pytest
from cases_changelog import TWICE, TWO_STEPS, send_the_add_first
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import searched_once

from labkit.sim.explore import explore, reachable
from labkit.sim.model import Action
from labkit.sim.models.changelog import BLUEPRINT, query
from labkit.sim.models.changelog.claims import is_settled, rows
from labkit.sim.models.changelog.model import Changelog
from labkit.sim.models.changelog.state import Kind, Message, Row, Table, applied, visible
from labkit.sim.trace import make, replay

trace_of = BLUEPRINT.trace_of

play = BLUEPRINT.play


def build(**given_values: object) -> Changelog:
    return make("changelog", given_values)


explored = partial(searched_once, "changelog")


def test_the_crash_between_delete_and_insert_is_the_shortest_way_to_lose_the_row():
    [violation, *_] = explored(**TWO_STEPS, broken="stored_at_delete").violations
    *_, deleted, died, restarted = map(str, violation.trace.actions)
    assert (deleted, died, restarted) == ("delete(2)", "crash", "restart")


NAMED = {
    "append_stream": "hello = 1, hello = 2, world = 1",
    "retract_stream": "hello = 2, world = 1",
    "upsert_stream": "hello = 2, world = 1",
    "lost_retraction": "hello = 1, hello = 3",
    "repeated_retraction": "hello = 2",
    "repeated_retraction_owed": "hello = 1 (-1 times), hello = 2",
    "overtaken_retraction": "hello = 2",
    "retraction_before_its_row": "hello = 1, hello = 2",
    "retraction_before_its_row_owed": "hello = 2",
    "lost_upsert": "hello = 3",
    "late_upsert": "hello = 1",
    "lost_delete": "hello = 1",
    "replayed_retractions": "hello = 2 (2 times)",
    "replayed_upserts": "hello = 2",
    "between_delete_and_insert": "hello = 2",
    "position_stored_with_the_delete": "nothing",
    "applied_twice": "hello = 1 (2 times)",
    "expired_state": "hello = 1 (2 times)",
}

RIGHT = {
    *("append_stream", "retract_stream", "upsert_stream", "repeated_retraction", "repeated_retraction_owed"),
    *("overtaken_retraction", "retraction_before_its_row_owed", "lost_upsert", "replayed_upserts"),
    "between_delete_and_insert",
}
"""The scenarios that end with what the batch query gives."""


@pytest.mark.parametrize("name", {**BLUEPRINT.scenarios, **NAMED})
def test_a_scenario_shows_what_it_promises(name: str):
    walked = replay(trace_of(name))
    assert rows(walked.state.consumer.table) == NAMED[name]
    right = query.batch(walked.model.settings, len(walked.model.settings.words))
    assert (visible(walked.state.consumer.table) == right) == (name in RIGHT)
    assert is_settled(walked.state)


def tables_of(name: str) -> list[str]:
    return [rows(state.consumer.table) for state in replay(trace_of(name)).states]


def test_the_scenarios_show_on_the_way_what_they_say():
    assert "hello = 1, hello = 2" in tables_of("overtaken_retraction")
    lost = tables_of("lost_upsert")
    assert lost[-2:] == ["hello = 1", "hello = 3"]
    missing = tables_of("between_delete_and_insert")
    assert missing[-3:] == ["nothing", "nothing", "hello = 2"]
    replayed = tables_of("replayed_upserts")
    assert "hello = 1" in replayed[replayed.index("hello = 2") :], "the table was seen to go back"


# The query and the table, told a second time.


words = st.lists(st.sampled_from(["hello", "world", "again"]), min_size=1, max_size=8)

encodings = st.sampled_from(["append", "retract", "upsert"])


def sent(built: Changelog) -> list[tuple[Message, ...]]:
    """What the query sends for each record."""
    state, found = built.initial(), []
    for offset in range(len(built.settings.words)):
        after = built.apply(state, Action("process", offset))
        found.append(after.network[len(state.network) :])
        state = after
    return found


@settings(max_examples=150)
@given(words, encodings, st.integers(0, 3))
def test_plain_consumers_of_all_three_streams_have_the_batch_result_after_every_record(
    chosen: list[str], encoding: str, at_most: int
):
    limit = 0 if encoding == "append" else at_most
    built = build(words="-".join(chosen), encoding=encoding, at_most=limit)
    bag: Counter[tuple[str, int]] = Counter()
    by_key: dict[str, int] = {}
    mine: Table = ()
    for number, changes in enumerate(sent(built), start=1):
        for change in changes:
            mine = applied(mine, change, owes=False)
            row = (change.key, change.value)
            if change.kind is Kind.ADD:
                bag[row] += 1
            elif change.kind is Kind.RETRACT:
                assert bag[row] == 1, "what is taken back is there"
                del bag[row]
            elif change.kind is Kind.UPSERT:
                by_key[change.key] = change.value
            else:
                del by_key[change.key]
        prefix = chosen[:number]
        counts = Counter(prefix)
        plain = {key: count for key, count in counts.items() if not limit or count <= limit}
        if encoding == "append":
            assert bag == Counter((word, prefix[: place + 1].count(word)) for place, word in enumerate(prefix))
        elif encoding == "retract":
            assert bag == Counter(plain.items())
        else:
            assert by_key == plain
        assert mine == query.batch(built.settings, number)
        assert {row[:2] for row in mine} == set(bag) | set(by_key.items())


@pytest.mark.parametrize("encoding", ["append", "retract", "upsert"])
@pytest.mark.parametrize("unknown", ["ignored", "owed"])
def test_the_table_is_what_the_log_says_up_to_the_consumers_position(encoding: str, unknown: str):
    built = build(encoding=encoding, unknown=unknown, losses=1, repeats=1, swaps=1, words="hello-hello-world")
    for state in reachable(built):
        assert state.consumer.table == told(state.topic[: state.consumer.stored], owes=unknown == "owed")


def told(log: tuple[Message, ...], *, owes: bool) -> tuple[Row, ...]:
    bag: dict[tuple[str, int], int] = {}
    by_key: dict[str, int] = {}
    for kind, key, value, _ in log:
        times = bag.get((key, value), 0)
        if kind is Kind.ADD:
            bag[key, value] = times + 1
        elif kind is Kind.RETRACT and (owes or times > 0):
            bag[key, value] = times - 1
        elif kind is Kind.UPSERT:
            by_key[key] = value
        elif kind is Kind.DELETE:
            by_key.pop(key, None)
    rows = [Row(*row, times) for row, times in bag.items() if times]
    return tuple(sorted([*rows, *(Row(key, value) for key, value in by_key.items())]))


# What each encoding makes of the same fault.


HARM = {
    ("append", "losses"): True,
    ("append", "repeats"): True,
    ("append", "swaps"): False,
    ("retract", "losses"): True,
    ("retract", "repeats"): True,
    ("retract", "swaps"): True,
    ("upsert", "losses"): True,
    ("upsert", "repeats"): False,
    ("upsert", "swaps"): True,
}


@pytest.mark.parametrize(("encoding", "fault"), HARM)
def test_a_fault_harms_one_encoding_and_not_another(encoding: str, fault: str):
    found = explored(**TWICE, encoding=encoding, **{fault: 1})
    assert ("equals_batch" in {violation.property for violation in found.violations}) == HARM[encoding, fault]


def test_the_gap_is_missed_where_the_add_is_sent_first(monkeypatch: pytest.MonkeyPatch):
    given_values = send_the_add_first(monkeypatch)
    assert explore(build(**given_values)).never_reached == ("gap",)
