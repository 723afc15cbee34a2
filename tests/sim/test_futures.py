"""What the futures of a step hold: as many schedules as somebody finds who plays every one, and no promise unseen."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from labkit.sim.explore import violations
from labkit.sim.futures import Fate, Futures, Prospect
from labkit.sim.model import Action, Durable, Model, Mood, Property
from labkit.sim.trace import Replay, make, replay


def schedules(model: Model[Any], taken: Sequence[Action]) -> Iterator[Replay]:
    """Every schedule that begins with these steps, played to its end."""
    walk = Replay(model)
    for action in taken:
        walk.forward(action)
    enabled = model.actions(walk.state)
    if not enabled:
        yield walk
    for action in enabled:
        yield from schedules(model, [*taken, action])


COUNTED = {
    "pipeline": {},
    "orders": {},
    "changelog": {"crashes": 1, "losses": 1, "words": "hello-hello"},
    "delivery": {"processes": 2, "records": 1, "retry": False, "dedup": "none"},
    "snapshot": {"processes": 2, "transfers": 1, "algorithm": "naive"},
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_wrong_schedules_are_counted_as_somebody_counts_who_plays_them_all(name: str):
    model = make(name, COUNTED[name])
    futures, met = Futures(model), set()
    walk = Replay(model)
    while (enabled := model.actions(walk.state)) and len(walk.actions) < 6:
        prospects = futures.of(walk.state)
        assert [each.action for each in prospects] == list(enabled)
        for prospect in prospects:
            wrong = [bool(violations(each)) for each in schedules(model, [*walk.actions, prospect.action])]
            assert prospect.counted == (sum(wrong), len(wrong))
            assert prospect.share == sum(wrong) / len(wrong)
            expected = Fate.RIGHT if not any(wrong) else Fate.WRONG if all(wrong) else Fate.MIXED
            assert prospect.fate is expected
            met.add(expected)
        walk.forward(next((each.action for each in prospects if each.fate is not Fate.WRONG), enabled[0]))
    assert Fate.MIXED in met


@pytest.mark.parametrize(("name", "parameters"), [("two_phase_commit", {"broken": "heuristic", "crashes": 0})])
def test_the_nearest_wrong_schedule_breaks_the_claim_it_names_and_none_is_shorter(name: str, parameters: dict):
    model = make(name, parameters)
    for prospect in Futures(model).of(model.initial()):
        if not prospect.nearest:
            continue
        assert prospect.nearest[0] == prospect.action
        walk = Replay(model)
        for action in prospect.nearest:
            assert not violations(walk)
            walk.forward(action)
        broken = {each.property: each.because for each in violations(walk)}
        assert broken[prospect.broken] == prospect.because
        level = [model.apply(model.initial(), prospect.action)]
        always = [claim for claim in model.properties() if claim.mood is Mood.ALWAYS]
        for _ in prospect.nearest[1:]:
            assert all(claim.is_kept(state) for state in level for claim in always)
            level = list(dict.fromkeys(after for state in level for _, after in model.successors(state)))


class Place(NamedTuple):
    at: Durable[str]


class Map(Model[Place]):
    """A model that is a drawing: each place with those that a step reaches; `bad` is wrong, `good` the right end."""

    name, version = "map", 1

    def __init__(self, ways: dict[str, str]) -> None:
        super().__init__({})
        self.ways = {place: after.split() for place, after in ways.items()}

    def initial(self) -> Place:
        return Place("home")

    def actions(self, state: Place) -> Sequence[Action]:
        return [Action("go", number) for number, _ in enumerate(self.ways.get(state.at, ()))]

    def apply(self, state: Place, action: Action) -> Place:
        return Place(self.ways[state.at][action.which])

    def properties(self) -> Sequence[Property[Place]]:
        return [
            Property("avoids", Mood.ALWAYS, "Nobody is at bad.", lambda state: state.at != "bad", str),
            Property("arrives", Mood.EVENTUALLY, "Who stops has arrived.", lambda state: state.at == "good", str),
        ]

    def text(self, state: Place) -> str:
        return state.at

    def sentence(self, action: Action) -> str:
        return str(action)


def prospects(most: int = 100, **ways: str) -> list[Prospect]:
    model = Map(ways)
    return Futures(model, most).of(model.initial())


def test_a_circle_that_never_ends_is_not_wrong_and_has_a_chance_in_place_of_a_count():
    [one] = prospects(home="loop", loop="loop bad")
    assert (one.fate, one.counted) == (Fate.MIXED, None)
    assert one.share == pytest.approx(1.0)
    [one] = prospects(home="loop", loop="back good bad", back="loop")
    assert (one.fate, one.counted) == (Fate.MIXED, None)
    assert one.share == pytest.approx(float(Fraction(1, 2)))
    [one] = prospects(home="loop", loop="loop back", back="loop")
    assert (one.fate, one.share, one.nearest) == (Fate.RIGHT, 0.0, ())


def test_all_wrong_is_said_of_what_cannot_end_well_also_where_it_only_stops():
    one, other = prospects(home="left right", left="bad stop", right="bad good", bad="good")
    assert (one.fate, one.share, one.counted) == (Fate.WRONG, 1.0, (2, 2))
    assert (other.fate, other.counted, other.broken) == (Fate.MIXED, (1, 2), "avoids")


def test_two_steps_to_one_place_are_two_schedules():
    [one] = prospects(home="middle", middle="good good bad")
    assert one.counted == (1, 3)


@pytest.mark.parametrize("most", [1, 2, 5, 20, 80, 140])
def test_a_search_that_was_bounded_promises_nothing_that_the_whole_one_denies(most: int):
    model = make("pipeline", {})
    whole, bounded = Futures(model), Futures(model, most)
    walk = replay(make_trace(model))
    for state in walk.states:
        for known, seen in zip(whole.of(state), bounded.of(state), strict=True):
            if seen.fate in (Fate.RIGHT, Fate.WRONG):
                assert seen.fate is known.fate
            if seen.counted:
                assert seen.counted == known.counted
            if seen.nearest:
                assert known.fate in (Fate.MIXED, Fate.WRONG)
    assert most > 100 or not bounded.is_whole(model.initial())


def make_trace(model: Model[Any]):
    walk = Replay(model)
    while enabled := model.actions(walk.state):
        walk.forward(enabled[0])
    return walk.trace


def test_a_limit_leaves_unknown_what_was_not_seen():
    [one] = prospects(3, home="a", a="b", b="c", c="d", d="bad")
    assert (one.fate, one.share, one.counted, one.nearest) == (Fate.UNKNOWN, None, None, ())
    one, other = prospects(4, home="a bad", a="b", b="c", c="good", bad="good")
    assert (one.fate, other.fate) == (Fate.UNKNOWN, Fate.WRONG)
