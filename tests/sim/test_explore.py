"""The search: complete, shortest, bounded by whatever is handed in, and blind to hash order."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from labkit.sim.explore import Search, explore, nearest_to, walk
from labkit.sim.model import Action, Durable, Model, Mood, Property, Volatile, crash, declared
from labkit.sim.trace import make


class Pair(NamedTuple):
    left: int
    right: int


class Counters(Model[Pair]):
    """Two counters up to a limit: (limit + 1) squared states."""

    name, version = "counters", 1

    def initial(self) -> Pair:
        return Pair(0, 0)

    def actions(self, state: Pair) -> Sequence[Action]:
        return [Action("add", which) for which in (0, 1) if state[which] < self.values["limit"]]

    def apply(self, state: Pair, action: Action) -> Pair:
        return Pair(state.left + (action.which == 0), state.right + (action.which == 1))

    def properties(self) -> Sequence[Property[Pair]]:
        def say(state: Pair) -> str:
            return f"the counters are {self.text(state)}."

        return (
            Property("small", Mood.ALWAYS, "The sum stays below 5.", lambda state: sum(state) < 5, say),
            Property("far", Mood.SOMETIMES, "The sum is 1,000.", lambda state: sum(state) == 1_000, say),
            Property("even", Mood.SOMETIMES, "The sum is 2.", lambda state: sum(state) == 2, say),
            Property("ends", Mood.EVENTUALLY, "Left is never full.", lambda state: state.left < 9, say),
        )

    def text(self, state: Pair) -> str:
        return f"{state.left} and {state.right}"

    def sentence(self, action: Action) -> str:
        return f"Counter {action.which} grows."


def counters(limit: int) -> Counters:
    return Counters({"limit": limit})


def test_every_state_is_counted_once_and_counterexamples_are_shortest():
    found = explore(counters(9))
    assert (found.unique_states, found.generated_states, found.depth, found.exhausted) == (100, 180, 18, True)
    assert {violation.property: len(violation.trace.actions) for violation in found.violations} == {
        "small": 5,
        "ends": 18,
    }
    assert found.violations[0].because == "the counters are 5 and 0."
    assert found.never_reached == ("far",)


def test_the_state_nearest_to_a_claim_is_one_that_it_is_about_or_an_end():
    class Late(Counters):
        def properties(self) -> Sequence[Property[Pair]]:
            far = super().properties()[1]
            about_three = far._replace(name="three", where=lambda state: state.left == 3)
            about_none = far._replace(name="none", where=lambda state: state.left > 9)
            return far, about_three, about_none

    model = Late({"limit": 4})
    assert explore(model).never_reached == ("far", "three", "none")
    lengths = {name: len(nearest_to(model, name).actions) for name in ("far", "three", "none")}
    assert lengths == {"far": 8, "three": 3, "none": 8}
    assert nearest_to(model, "far", max_states=5) is None


def test_limits_end_a_search_and_say_so():
    limited = explore(counters(300), max_states=1_000)
    assert (limited.exhausted, limited.stopped) == (False, "1000 states were reached")
    assert 1_000 <= limited.unique_states <= 1_002
    asked = []
    stopped = explore(counters(300), keep_going=lambda progress: asked.append(progress) or len(asked) < 3)
    assert (stopped.exhausted, stopped.stopped, len(asked)) == (False, "it was told to stop", 3)
    assert asked[0].unique < asked[1].unique < stopped.unique_states < 301 * 301
    assert [violation.property for violation in stopped.violations] == ["small"]


def test_what_a_level_breaks_stands_in_the_order_of_the_claims():
    """Both claims break in the same level, the second one in its first states and the first one in its last."""

    class Wide(Counters):
        def actions(self, state: Pair) -> Sequence[Action]:
            return [Action("add", which) for which in range(2_000 * (state.left == 0))]

        def apply(self, _state: Pair, action: Action) -> Pair:
            return Pair(1, action.which)

        def properties(self) -> Sequence[Property[Pair]]:
            def claim(name: str, mood: Mood, wrong: int) -> Property[Pair]:
                return Property(name, mood, name, lambda state: state.right != wrong, str)

            return (claim("end", Mood.EVENTUALLY, 3), claim("last", Mood.ALWAYS, 1_999), claim("first", Mood.ALWAYS, 1))

    found = explore(Wide({}))
    assert found.unique_states == 2_001
    assert [each.property for each in found.violations] == ["last", "first", "end"]


@pytest.mark.parametrize("name", ["two_phase_commit", "pipeline", "barriers"])
def test_a_search_that_is_stopped_has_looked_at_all_that_it_reached(name: str):
    looked: list[object] = []

    class Looking(type(make(name, {}))):
        def properties(self) -> Sequence[Property[object]]:
            def note(state: object) -> bool:
                looked.append(state)
                return True

            return (Property("noted", Mood.ALWAYS, "", note, str),)

    model = Looking(make(name, {}).values)
    search = Search(model, 30).run()
    assert search.stopped
    assert looked == list(map(search.packer.unpack, search.parents))


def test_a_walk_is_decided_by_its_chooser_alone():
    first, again = (walk(counters(9), random.Random(7).randrange, 100) for _ in range(2))
    assert first == again
    trace, violations = first
    assert len(trace.actions) == 18
    assert {violation.property for violation in violations} == {"small", "ends"}
    assert len(violations[0].trace.actions) == 5
    short, none = walk(counters(9), random.Random(7).randrange, 3)
    assert (len(short.actions), none) == (3, ())


def test_walks_reach_where_a_search_cannot():
    model = make("two_phase_commit", {"participants": 8, "broken": "heuristic", "crashes": 3, "losses": 3})
    found = {
        violation.property for seed in range(40) for violation in walk(model, random.Random(seed).randrange, 300)[1]
    }
    assert "promise" in found


def test_every_field_of_a_process_is_marked():
    class Marked(NamedTuple):
        kept: Durable[int]
        gone: Volatile[str] = "nothing"

    class Forgotten(NamedTuple):
        kept: int

    assert declared(Marked) == {"kept": "durable", "gone": "volatile"}
    assert crash(Marked(3, "much")) == Marked(3, "nothing")
    with pytest.raises(TypeError, match=r"Forgotten\.kept must be typed"):
        crash(Forgotten(3))
