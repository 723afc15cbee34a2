"""Designs that somebody built against what their sources say, and the words in which the table says it."""

import pytest

from labkit import lab
from labkit.sim.models.orders.state import World
from labkit.sim.orders.cheapest import cheapest
from labkit.sim.orders.named import NAMED, named
from labkit.sim.orders.outcomes import find
from labkit.sim.writes import Write
from labkit.teach.orders import GRANTED, Order


@pytest.mark.parametrize("name", ["millwheel", "outbox-idempotent"])
def test_receivers_that_know_ids_never_see_a_value_go_back(name: str):
    """A known id is dropped, not written again: that is the difference to an upsert."""
    for world in (World.SAME, World.OTHER):
        assert not find(named(name), world).witnesses


def test_millwheel_acknowledges_after_its_atomic_write_and_before_it_sends():
    design = named("millwheel")
    assert design.place(Write.STATE) == design.place(Write.STAGED)
    assert design.place(Write.STATE) < design.place(Write.NOTICE) < design.place(Write.VISIBLE)


TAKEN_FOR_GRANTED = {
    "flink-two-phase": "expires",
    "flink-log": "next completed checkpoint",
    "spark-files": "_spark_metadata",
    "spark-marker": "new checkpoint",
    "delta-txn": "new checkpoint",
    "spark-upsert": "n = n + 1",
    "kafka-streams": "read_committed",
    "kafka-transaction": "read_committed",
}
"""The word that the limit of a verdict must not be without."""


@pytest.mark.parametrize("name", TAKEN_FOR_GRANTED)
def test_a_verdict_says_what_it_takes_for_granted(name: str):
    word = TAKEN_FOR_GRANTED[name]
    assert word in NAMED[name].limit
    order = Order(named(name))
    assert word in str(order)
    assert word in order._repr_mimebundle_()["text/html"]
    assert GRANTED in str(order)


def test_the_table_explains_its_words_and_what_it_takes_for_granted():
    said = str(lab.orders())
    for word in ("output", "decision", "marker", "staged", "cannot be"):
        assert f"\n{word}: " in said
    assert said.endswith(GRANTED)


def test_what_is_exactly_once_already_needs_no_edit():
    (change,) = cheapest(named("spark-marker"))
    assert str(change) == "no edit: the design is exactly-once already"
