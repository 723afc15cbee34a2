"""What a guarantee costs in the simulators: the data of the figures, and what is really drawn."""

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order
from labkit.core.strategies import POINTS, Strategy
from labkit.sim.models.pipeline.latency import undisturbed, waits


def test_a_record_waits_from_its_plan_until_a_reader_sees_it():
    walk = undisturbed(Strategy.TWO_PHASE, Order.DECISION, "files", "hello-world-hello", 3)
    names = [str(action) for action in walk.actions]
    found = waits(walk)
    assert [(wait.offset, wait.word) for wait in found] == [(0, "hello"), (1, "world"), (2, "hello")]
    assert {wait.planned for wait in found} == {names.index("plan(0)") + 1}
    commits = [names.index(f"notified_commit({participant})") + 1 for participant in (1, 2)]
    assert sorted({wait.visible for wait in found}) == commits
    assert names.index("log_commit(0)") + 1 < min(commits)


def test_whoever_waits_for_the_decision_waits_longest():
    _, shown = lab.until_visible()
    longest = {name: max(wait.steps for wait in each) for name, each in shown.items()}
    assert len(longest) == len(POINTS)
    assert longest["append"] == longest["idempotent"] < longest["batch_marker"]
    for sink in ("wal", "two_phase"):
        assert longest["batch_marker"] < longest[f"{sink}, commit-then-log"] < longest[f"{sink}, log-then-commit"]


def test_every_record_is_drawn_where_its_data_says():
    figure, shown = lab.until_visible("hello-world-hello", records_per_batch=2)
    (axes,) = figure.axes
    drawn = [tuple(map(float, mark.get_offsets()[0])) for mark in axes.collections if len(mark.get_offsets())]
    for row, each in enumerate(shown.values()):
        steps = sorted(x for x, y in drawn if round(y) == row)
        assert steps == sorted(wait.steps for wait in each)
    assert "not seconds" in axes.get_xlabel()


def test_alignment_holds_records_back_and_overtaking_stores_them():
    figure, shown = lab.held_back("barriers.alignment", "barriers.overtaking", "barriers.no_alignment")
    assert {name: (held.most, held.stored > 0) for name, held in shown.items()} == {
        "alignment": (1, False),
        "overtaking": (0, True),
        "no_alignment": (0, False),
    }
    facts = lab.replay("barriers.alignment").facts
    assert sum(map(bool, shown["alignment"].waiting)) == facts["waiting_records_steps"]
    for axes, held in zip(figure.axes, shown.values(), strict=True):
        assert list(axes.lines[0].get_ydata()) == held.waiting
    words = [text.get_text() for text in figure.axes[0].texts]
    assert "1 held back" in words


@pytest.mark.parametrize(
    ("name", "complaint"), [("pipeline.jump_back", "has no barriers"), ("barriers.algnment", "did you mean")]
)
def test_a_scenario_without_barriers_gets_one_sentence(name, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        lab.held_back(name)
