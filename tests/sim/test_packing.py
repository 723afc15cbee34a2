"""States as numbers: each has one of its own, and gets the state back from it."""

from itertools import islice

import pytest

from labkit.sim.explore import reachable
from labkit.sim.models import MODELS
from labkit.sim.models.barriers.state import State
from labkit.sim.packing import Packer
from labkit.sim.trace import make


@pytest.mark.parametrize("name", MODELS)
def test_a_number_gives_its_state_back_and_no_two_states_have_the_same(name: str):
    model = make(name, {})
    packer, states = (Packer(model), list(islice(reachable(model, max_states=3_000), 3_000)))
    numbers = [packer.pack(state) for state in states]
    assert len(set(numbers)) == len(set(states)) > 20
    assert [packer.unpack(number) for number in numbers] == states
    assert [packer.pack(state) for state in states] == numbers


def test_a_field_takes_no_more_bits_than_its_values_need():
    model = make("two_phase_commit", {"textbook": True, "participants": 3})
    packer = Packer(model)
    numbers = [packer.pack(state) for state in reachable(model)]
    # 3 decisions, 52 rows of participants, 8 sets sent and 8 heard.
    assert max(map(int.bit_length, numbers)) <= 2 + 6 + 3 + 3


def test_another_packer_reads_the_numbers_after_it_was_told_the_news():
    model = make("barriers", {"counts": 1})
    states = list(reachable(model, max_states=2_000))
    one, other = Packer(model), Packer(model)
    told = [0] * one.width
    for half in (states[:1_000], states[1_000:]):
        numbers = list(map(one.pack, half))
        told, news = one.news(told)
        other.read_on(news)
        assert list(map(other.unpack, numbers)) == half
        assert list(map(other.pack, half)) == numbers
    assert one.news(told) == (told, [(mask, []) for mask, _ in one.news(told)[1]])


def test_a_packer_that_reads_another_one_s_numbers_gives_none_away():
    model = make("two_phase_commit", {})
    first, *others = reachable(model)
    one, other = Packer(model), Packer(model)
    one.pack(first)
    other.read_on(one.news([0] * one.width)[1])
    assert other.pack(first) == one.pack(first)
    with pytest.raises(KeyError):
        other.pack(others[0])
    assert [field for field, _ in other.unknown(others[0])]


def test_a_closed_packer_learns_nothing_until_it_is_opened():
    first, *others = reachable(make("two_phase_commit", {}))
    packer = Packer(make("two_phase_commit", {}))
    number = packer.pack(first)
    packer.close()
    with pytest.raises(KeyError):
        packer.pack(others[0])
    assert packer.pack(first) == number
    packer.close(is_closed=False)
    assert packer.unpack(packer.pack(others[0])) == others[0]


def test_the_bits_of_a_field_tell_its_values_apart_and_no_others():
    model = make("barriers", {"counts": 1})
    packer, states = Packer(model), list(reachable(model, max_states=2_000))
    numbers = list(map(packer.pack, states))
    for place, field in enumerate(states[0]._fields):
        mask = packer.mask([place])
        by_bits = {}
        for number, state in zip(numbers, states, strict=True):
            by_bits.setdefault(number & mask, set()).add(getattr(state, field))
        assert {len(values) for values in by_bits.values()} == {1}
        assert len(by_bits) == len({getattr(state, field) for state in states})
    bits = max(numbers).bit_length()
    assert packer.mask(range(len(states[0]))) == (1 << bits) - 1


def test_a_row_of_another_length_is_refused_before_it_can_be_taken_for_another_state():
    model = make("barriers", {"counts": 1})
    state: State = model.initial()
    longer = state._replace(operators=(*state.operators, state.operators[0]))
    with pytest.raises(TypeError, match=r"operators had 2 entries, one for each process, and now has 3, but"):
        Packer(model).pack(longer)
