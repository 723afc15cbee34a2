"""The strip of one batch: nine moments, each failpoint of a batch exactly once, and what is said of each sink."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.core.failpoints import RECOVERY_POINTS, FailPoint, Order, engine_logs
from labkit.core.moments import NAMES, moments
from labkit.core.strategies import POINTS, Pending, Strategy
from labkit.runs.expected import expectations
from labkit.view.strip import Strip

ROOT = Path(__file__).parent.parent


def points_of(strip: Strip) -> list[FailPoint]:
    return [each.point for each in strip.moments]


def test_every_failpoint_of_a_batch_is_there_exactly_once():
    in_a_batch = [point for point in FailPoint if point not in RECOVERY_POINTS]
    for strategy, order in [(None, None), *POINTS]:
        shown = points_of(Strip(None, strategy, order))
        assert sorted(shown) == sorted(in_a_batch), (strategy, order)
    assert len(in_a_batch) == 9


def test_the_names_are_those_of_the_course():
    said = [each.name for each in lab.strip().moments]
    assert said == ["plan", "write", "task done", "ready", "votes", "half", "flushed", "committed", "noted"]


@pytest.mark.parametrize(("strategy", "order"), POINTS)
def test_a_sink_passes_its_own_moments_in_its_own_order(strategy, order):
    passed = [each.point for each in moments(strategy, order) if each.is_passed]
    assert tuple(passed) == POINTS[strategy, order]
    own = {step.point: (step.words, step.is_on_disk) for step in strategy.facts.steps(order)}
    assert {each.point: (each.words, each.is_on_disk) for each in moments(strategy, order) if each.is_passed} == own


@pytest.mark.parametrize("strategy", Strategy)
def test_the_steps_of_a_strategy_come_once_each_in_the_order_of_the_moments(strategy: Strategy):
    facts, in_order = strategy.facts, list(NAMES)
    write, commit = ([in_order.index(step.point) for step in steps] for steps in (facts.write, facts.commit))
    assert [NAMES[in_order[each]] for each in (write[0], write[-1])] == ["plan", "ready"]
    assert write == sorted(set(write))
    assert {NAMES[in_order[each]] for each in commit} <= {"half", "flushed", "committed"}
    assert commit == sorted(set(commit))
    assert bool(commit) is (facts.pending is not Pending.NOWHERE)


def test_of_any_sink_exactly_the_files_of_the_checkpoint_are_green():
    green = {each.point for each in lab.strip().moments if each.is_on_disk}
    assert green == {FailPoint.AFTER_OFFSET_LOG, FailPoint.AFTER_HANDLES, FailPoint.AFTER_COMMIT_LOG}
    for point in green - {FailPoint.AFTER_HANDLES}:
        logs = engine_logs(point, Order.ENGINE)
        assert logs.planned


def test_append_has_no_votes():
    strip = lab.strip(sink="append")
    without = {each.name for each in strip.moments if not each.is_passed}
    assert without == {"task done", "votes", "half", "flushed", "committed"}
    [votes] = re.findall(r"<li[^>]*>(?:(?!</li>).)*votes.*?</li>", strip.html())
    assert 'class="without"' in votes
    assert "not with this sink" in votes


def test_the_decision_comes_before_the_commit_in_flinks_order():
    names = [each.name for each in lab.strip(sink="two_phase").moments]
    assert names.index("noted") < names.index("half") < names.index("committed")
    names = [each.name for each in lab.strip(sink="two_phase", order="engine").moments]
    assert names.index("committed") < names.index("noted")


def test_the_kill_is_marked_once_and_in_words():
    strip = lab.strip(killed="sink.after_pre_commit", sink="append")
    html = strip.html()
    assert len(re.findall(r'<li class="[^"]*killed', html)) == 1
    assert "ready ✗ killed" in html
    assert "killed at ready: all rows are in the store." in html
    [line] = [line for line in str(strip).splitlines() if "killed" in line]
    assert line.startswith("ready")
    assert "killed" not in lab.strip().html().partition("</style>")[2]


def test_it_is_a_list_whose_tooltips_are_the_failpoints():
    strip = lab.strip()
    root = ET.fromstring(strip.html())
    [listed] = root.iter("ol")
    entries = list(listed)
    assert [each.tag for each in entries] == ["li"] * 9
    assert [each.get("title", "").partition(": ")[0] for each in entries] == [point.value for point in NAMES]
    for each, point in zip(entries, NAMES, strict=True):
        assert each.get("title", "").endswith(point.sentence)
    # Who has no mouse reads the same in a table.
    said = ET.tostring(root, encoding="unicode", method="text")
    assert all(point.value in said and point.sentence in said for point in NAMES)
    green = [each for each in entries if "disk" in each.get("class", "")]
    assert all("leaves something on disk" in "".join(each.itertext()) for each in green)


def test_the_text_has_a_line_a_moment_and_the_card_says_the_same():
    strip = lab.strip(sink="wal")
    assert len(str(strip).splitlines()) == 10
    shown = strip._repr_mimebundle_()
    assert shown["text/plain"] == str(strip)
    assert shown == lab.strip(sink="wal")._repr_mimebundle_()
    assert len(shown["text/html"].encode()) <= 50_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sink": "apend"}, "did you mean 'append'?"),
        ({"sink": "two_phase", "order": "flink"}, "choose one of"),
        ({"order": "engine"}, 'lab.strip(sink="two_phase", order="engine")'),
        (
            {"killed": "sink.mid_wrte"},
            "lab.strip(): there is no failpoint 'sink.mid_wrte'; did you mean 'sink.mid_write'?",
        ),
        ({"killed": "append"}, 'write lab.strip(sink="append")'),
        ({"killed": "sink.mid_write@3"}, 'leave out @ and the number after it: lab.strip("sink.mid_write")'),
        ({"killed": 5}, 'as in lab.strip("sink.mid_write"'),
        ({"sink": 5}, 'as in lab.strip("sink.mid_write"'),
        ({"sink": "wal", "order": ["x"]}, 'as in lab.strip("sink.mid_write"'),
        ({"killed": "recovery.mid_resolve"}, "lies in recovery"),
        ({"killed": "sink.mid_commit", "sink": "append"}, "append has no failpoint"),
    ],
)
def test_what_is_not_there_is_refused(arguments, said):
    with pytest.raises(InvalidInput, match=re.escape(said)):
        lab.strip(**arguments)


def test_the_reference_shows_the_strip_with_every_failpoint():
    picture = (ROOT / "docs" / "strip.svg").read_text(encoding="utf-8")
    said = "".join(ET.fromstring(picture).itertext())
    assert "../strip.svg" in (ROOT / "docs" / "reference" / "run.md").read_text(encoding="utf-8")
    for strategy in (Strategy.APPEND, None):
        for each in moments(strategy):
            assert each.point.value in said


def test_what_is_on_disk_half_way_is_what_a_reader_of_the_real_runs_saw():
    """The other voice: predictions by hand, each compared with real Spark, say where half a batch was visible."""
    half_way = {FailPoint.MID_WRITE, FailPoint.MID_COMMIT}
    compared = 0
    for cell, expected in expectations().items():
        if cell.point in half_way:
            step = cell.strategy.facts.step(cell.point)
            assert step is not None, cell
            assert bool(expected.fractured_read) is step.is_on_disk, cell
            compared += 1
    assert compared > 10


def test_a_failpoint_in_a_comparison_has_the_name_of_its_moment() -> None:
    runs = {point: lab.simulate(point, sink="wal") for point in lab.points("wal")[:2]}
    told = str(lab.compare({**runs, "other": runs["sink.mid_write"]}))
    assert "plan (source.after_offset_log)" in told
    assert "write (sink.mid_write)" in told
    assert "\nother " in told
