"""What a reader of a changing table finds beside the batch query: the numbers, their text, and what is really drawn."""

import re
import xml.etree.ElementTree as ET

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.sim.models.changelog import BLUEPRINT
from labkit.sim.models.changelog.claims import is_settled
from labkit.sim.models.changelog.query import batch
from labkit.sim.trace import make
from labkit.view.measure import width
from labkit.view.totals import COLUMN, LEFT, Totals, totals_in

SVG = "{http://www.w3.org/2000/svg}"
COUNTED = [name for name in BLUEPRINT.scenarios if name != "append_stream"]
"""An append-only stream holds the history of each count, so its counts do not add up to the records."""


def totals_of(name: str):
    return totals_in(lab.replay(f"changelog.{name}").walk)


@pytest.mark.parametrize("name", COUNTED)
def test_the_last_total_is_that_of_the_models_own_tables(name: str) -> None:
    walk = lab.replay(f"changelog.{name}").walk
    state = walk.state
    assert is_settled(state)
    last = totals_in(walk)[-1]
    settings = make("changelog", dict(walk.model.values)).settings
    if not settings.at_most:
        right = batch(settings, state.furthest)
        assert last.records == sum(row.value for row in right) == state.furthest
    assert last.reader_sum == sum(row.value * row.times for row in state.consumer.table if row.times > 0)
    assert last.is_whole


@pytest.mark.parametrize(
    ("name", "found", "differs"),
    [
        ("retract_stream", [1, 2, 1, 3], []),
        ("upsert_stream", [1, 2, 3], []),
        ("lost_retraction", [1, 1, 3, 1, 4], [2, 4]),
        ("lost_upsert", [1, 1, 3], [1]),
        ("replayed_upserts", [1, 2, 1, 2], [2]),
        ("replayed_retractions", [1, 0, 2, 2, 4], [4]),
        ("between_delete_and_insert", [1, 0, 2], []),
        ("position_stored_with_the_delete", [1, 0], [1]),
    ],
)
def test_totals_after_each_message(name: str, found: list, differs: list) -> None:
    shown = totals_of(name)
    assert [each.reader_sum for each in shown] == found
    assert [place for place, each in enumerate(shown) if each.differs] == differs


def test_what_is_lost_is_named_and_half_a_change_is_no_error() -> None:
    shown = totals_of("lost_retraction")
    assert [each.message for each in shown if each.is_lost] == ["- hello 1"]
    between = totals_of("retract_stream")[2]
    assert (between.reader_sum, between.records, between.differs) == (1, 3, False)


def test_the_picture_says_what_its_text_says() -> None:
    figure = lab.totals("changelog.retract_stream", "changelog.lost_retraction")
    bundle = figure._repr_mimebundle_()
    assert bundle["text/plain"].splitlines()[3:] == [
        "lost retraction  + hello 1  - hello 1 (lost)  + hello 2  - hello 2  + hello 3",
        "  batch query    1          2                 2          3          3",
        "  reader         1          1 between         3 wrong    1 between  4 wrong",
    ]
    root = ET.fromstring(figure.svg())
    description = root.find(f"{SVG}desc")
    assert description.text == bundle["text/plain"]
    said = [each.text for each in root.iter(f"{SVG}text")]
    for run in figure.runs.values():
        assert all(each.message in said for each in run)
    assert said.count("lost") == 1
    assert "<script" not in bundle["text/html"]


@pytest.mark.parametrize("name", ["lost_retraction", "lost_upsert", "retract_stream"])
def test_each_line_lies_where_its_numbers_say(name: str) -> None:
    """The steps of the two lines are read back from the picture; a cross and a ring stand where a reader
    finds another.
    """
    shown = totals_of(name)
    root = ET.fromstring(Totals({name: shown}).svg())
    lines = {
        str(path.get("class")): str(path.get("d"))
        for path in root.iter(f"{SVG}path")
        if str(path.get("d")).startswith(f"M{LEFT} ")
    }
    floor = float(re.findall(r"M\d+ ([\d.]+)H", lines["la"])[0])
    for kind, wanted in (("mt", [each.records for each in shown]), ("ms m1", [each.reader_sum for each in shown])):
        heights = [float(each) for each in re.findall(r"[V ]([\d.]+)H", lines[kind])]
        unit = (floor - heights[0]) / wanted[0]
        assert [round((floor - each) / unit) for each in heights] == wanted
    crosses = [each for each in root.iter(f"{SVG}path") if each.get("class") == "cr"]
    rings = [each for each in root.iter(f"{SVG}circle") if each.get("class") == "tg"]
    assert len(crosses) == 1 + sum(each.differs for each in shown)  # one in the key
    assert len(rings) == 1 + sum(each.reader_sum != each.records and not each.differs for each in shown)


@pytest.mark.parametrize("name", BLUEPRINT.scenarios)
def test_no_message_is_wider_than_its_column(name: str) -> None:
    assert all(width(each.message, 11.5) < COLUMN for each in totals_of(name))


@pytest.mark.parametrize(
    ("scenarios", "told"),
    [
        ((), "needs a scenario"),
        (("barriers.alignment",), "comes from the simulator barriers"),
        (("changelog.lost_retractoin",), "lost_retraction"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(scenarios, told) -> None:
    with pytest.raises(InvalidInput, match=told):
        lab.totals(*scenarios)


def test_a_run_without_messages_is_refused() -> None:
    start = lab.replay("changelog.retract_stream").walk.beginning(0)
    with pytest.raises(InvalidInput, match="reads no message"):
        totals_in(start)
