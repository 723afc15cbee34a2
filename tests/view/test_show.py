"""The simulator's picture of a real run: the same crash, opened where its failpoint has been reached."""

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order
from labkit.runs.expected import expectations
from labkit.runs.pages.simulated import at_failpoint
from labkit.runs.scenario import plan


@pytest.mark.parametrize("cell", expectations(), ids=str)
def test_every_real_cell_opens_at_its_failpoint(cell):
    order = None if cell.order is Order.NONE else cell.order.value
    player = at_failpoint(plan(sink=cell.strategy.value, store=cell.store, order=order, crashes=[f"{cell.point}@0"]))
    story = player.story
    model = story.model
    assert cell.point in model.reached(story.states[player.at - 1], story.actions[player.at - 1])
    assert story.actions[player.at].name == "crash"
    assert story.watch_for.startswith(f"Step {player.at} reaches {cell.point}.")
    assert player.to_json()["at"] == player.at


def test_another_input_is_simulated_as_it_is(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"word": "one"}\n{"word": "two"}\n')
    assert at_failpoint(plan(input=log, crashes=["sink.mid_write@0"])).story.model.settings.words == ("one", "two")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"job": "totals", "crashes": ["sink.mid_write@0"]}, "can repeat only a run of the job `running`"),
        ({"crashes": []}, "no crash to simulate"),
        ({"crashes": ["sink.mid_write@0"], "records_per_batch": 2}, "single batch of at most"),
    ],
)
def test_what_is_not_modelled_gets_one_sentence(options, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        at_failpoint(plan(**options))
