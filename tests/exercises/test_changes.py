"""The rules of the exercises about changes, held against the simulator's query and its receiver."""

from itertools import pairwise

import pytest

from labkit.core.errors import InvalidInput
from labkit.sim.models.changelog.query import messages
from labkit.sim.models.changelog.state import Kind, settings
from labkit.sim.trace import make, parse, replay
from labkit.teach.exercises.changes import APPLY, MEANS, MESSAGES, REFUSED, WAYS, really_sent
from labkit.teach.exercises.contract import Variant
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import find

COUNTS = range(6)


@pytest.mark.parametrize("way", ["retract", "upsert"])
@pytest.mark.parametrize("at_most", range(4))
def test_messages_are_those_of_the_simulated_query(way: str, at_most: int):
    """Of a count that grows by one, whichever counts are in the result."""
    given = settings(make("changelog", {"encoding": way, "at_most": at_most}).values)
    said = 0
    for old, new in pairwise(COUNTS):
        before, after = (count if given.shows(count) else None for count in (old, new))
        sent = messages(given, "hello", old, 7)
        told = [[str(kind), key, count] for kind, key, count, _ in sent]
        # The simulated upsert stream deletes a row by its key and its old count, and so does the exercise.
        assert told == really_sent(way, "hello", before, after)
        said += len(sent)
    assert said >= 2


def test_append_only_refuses_what_the_simulator_refuses():
    """A row that leaves the result needs to be taken back: the simulator takes no such configuration."""
    with pytest.raises(InvalidInput, match="append-only"):
        settings(make("changelog", {"encoding": "append", "at_most": 1}).values)
    assert really_sent("append", "hello", 1, None) == REFUSED
    assert really_sent("append", "hello", 1, 2) == REFUSED
    assert really_sent("append", "hello", None, 1) == [["+", "hello", 1]]


@pytest.mark.parametrize("way", WAYS)
def test_a_row_that_has_not_changed_is_not_mentioned(way: str):
    for count in (None, *COUNTS):
        assert really_sent(way, "hello", count, count) == []


def test_every_sign_has_its_sentence():
    assert set(MEANS) == set(Kind)


def test_a_counterexample_of_a_receiver_is_a_run_to_that_table():
    def keeps_all(rows, _message):
        return rows

    answer = InNotebook("apply", {"apply": keeps_all})
    finding = APPLY.judge(answer, find("10-apply").public[0])
    assert not finding.passed
    assert finding.trace is not None
    walk = replay(parse(finding.trace))
    assert (len(walk.actions), walk.state.consumer.table) == (finding.at, ())
    assert walk.state.topic[0].kind is Kind.ADD


@pytest.mark.parametrize(
    ("judge", "name", "given", "said"),
    [
        (MESSAGES.judge, "messages", None, "return a list of messages"),
        (MESSAGES.judge, "messages", "no", "return a list of messages"),
        (APPLY.judge, "apply", {"hello": 1}, "return a list of rows"),
        (APPLY.judge, "apply", [1, 2], "return a list of rows"),
    ],
)
def test_another_form_gets_a_sentence(judge, name, given, said):
    answer = InNotebook(name, {name: lambda *_: given})
    finding = judge(answer, find(f"10-{name}").public[0])
    assert not finding.passed
    assert said in finding.message


def test_an_answer_that_changes_is_refused():
    said = []

    def messages_(way, word, before, after):
        said.append(1)
        right = really_sent(way, word, before, after)
        return right if len(said) <= 27 else []

    variant = Variant("few", (("words", ("hello",)), ("counts", (1, 2))))
    finding = MESSAGES.judge(InNotebook("messages", {"messages": messages_}), variant)
    assert not finding.passed
    assert "when asked again" in finding.message
