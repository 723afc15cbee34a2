"""What can be chosen for a crash always fits together, and every name that does not exist gets one sentence."""

import ast

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import POINTS, Strategy
from labkit.runs.choices import PARTS, choose
from labkit.runs.scenario.checks import stores_for
from labkit.spark.options import HELLO_WORLD_HELLO


@pytest.mark.parametrize("sink", Strategy)
def test_every_choice_that_is_offered_can_be_run(sink):
    """Whatever is picked, part after part, the scenario is one that `labkit run` takes."""
    first = choose(sink=sink.value)
    assert first.names["sink"] == [each.value for each in Strategy]
    for store in first.names["store"]:
        for order in first.names["order"]:
            chosen = first.change("store", store).change("order", order)
            assert chosen.names["failpoint"] == [point.value for point in POINTS[sink, Order(order)]]
            for point in chosen.names["failpoint"]:
                scenario = chosen.change("failpoint", point).scenario()
                crash = (str(scenario.strategy), scenario.store, str(scenario.order), str(scenario.crashes[0].point))
                assert crash == (sink.value, store, order, point)
                assert scenario.input == HELLO_WORLD_HELLO


def test_what_no_longer_fits_follows():
    chosen = choose(sink="two_phase", order="engine", failpoint="sink.mid_commit")
    changed = chosen.change("sink", "append")
    assert (changed["order"], changed["failpoint"]) == (Order.NONE, FailPoint.AFTER_PRE_COMMIT)
    assert changed.change("sink", "idempotent")["store"] == "sqlite"
    kept = chosen.change("order", "decision")
    assert (kept["failpoint"], kept["store"]) == (chosen["failpoint"], chosen["store"])


def test_a_sink_is_offered_only_the_stores_that_carry_it():
    assert stores_for(Strategy.IDEMPOTENT) == [
        store for store in stores_for(Strategy.APPEND) if store not in ("files", "kafka")
    ]


def test_the_call_is_python_and_says_what_was_chosen(tmp_path):
    path = tmp_path / 'a "quoted" log.jsonl'
    chosen = choose(sink="wal", store="sqlite", order="engine", failpoint="sink.mid_commit", input=path)
    call = ast.parse(chosen.call(), mode="eval").body
    said = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    assert ast.literal_eval(call.args[0]) == "sink.mid_commit"
    assert said == {"sink": "wal", "store": "sqlite", "order": "engine", "input": str(path)}
    assert chosen.scenario().input == path


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ({"sink": "apend"}, "sink 'apend': unknown; did you mean 'append'?"),
        (
            {"sink": "append", "order": "engine"},
            "order 'engine': not possible with the sink append; choose one of none.",
        ),
        ({"sink": "idempotent", "store": "files"}, "store 'files': not possible with the sink idempotent"),
        (
            {"failpoint": "sink.mid_commit"},
            "failpoint 'sink.mid_commit': not possible with the sink append; choose one of",
        ),
    ],
)
def test_a_wrong_name_gets_one_sentence(wanted, complaint):
    with pytest.raises(InvalidInput) as refused:
        choose(**wanted)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(("part", "value"), [("colour", "red"), ("failpoint", "sink.after_commit"), ("sink", "")])
def test_a_change_that_cannot_be_is_refused(part, value):
    with pytest.raises(InvalidInput, match="unknown"):
        choose().change(part, value)


def test_the_parts_narrow_each_other_in_order_and_free_text_is_last():
    assert PARTS == ("sink", "store", "order", "failpoint", "input")


def test_every_part_can_be_changed():
    chosen = choose()
    for part in PARTS:
        assert chosen.change(part, chosen[part]) == chosen
