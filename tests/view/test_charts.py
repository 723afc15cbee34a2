"""Figures show what they are given: the data beside them, and what matplotlib really draws."""

import pytest

from labkit.core.records import Observation, Reading
from labkit.view.charts import Point, seen_over_time
from labkit.view.timeline import by_key


def row(value: int, attempt: int) -> Observation:
    return Observation(value, "hello", value, 0, attempt)


JUMPS = by_key([row(1, 1), row(2, 1), Reading("crash 1"), row(1, 2), row(2, 2), Reading("end")])["hello"]
WAITS = by_key([Reading("crash 1"), row(1, 2), row(2, 2), Reading("end")])["hello"]


@pytest.fixture(scope="module")
def shown():
    return seen_over_time({"append": JUMPS, "two_phase": WAITS}, "hello")


def test_a_jump_back_is_marked_and_nothing_else(shown):
    _, data = shown
    assert data["append"].points == [
        Point(1, 1, 1, went_back=False),
        Point(2, 2, 1, went_back=False),
        Point(4, 1, 2, went_back=True),
        Point(5, 2, 2, went_back=False),
    ]
    assert not any(point.went_back for point in data["two_phase"].points)


def test_the_crash_stands_at_the_same_place_in_every_run(shown):
    _, data = shown
    assert {track.moments[0] for track in data.values()} == {(3, "crash 1")}


def test_the_picture_shows_the_data(shown):
    figure, data = shown
    for axes, track in zip(figure.axes, data.values(), strict=True):
        drawn = [tuple(place) for marks in axes.collections for place in marks.get_offsets().tolist()]
        assert sorted(drawn) == [(point.place, point.value) for point in track.points]
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words.count("jumps back") == 1
    assert "jumps back" not in [text.get_text() for text in figure.axes[1].texts]


def test_crash_restart_and_the_way_back_are_seen_at_a_glance(shown):
    figure, _ = shown
    above, below = figure.axes
    for axes in (above, below):
        words = [text.get_text() for text in axes.texts]
        assert {"✗ crash 1", "restart ▸"} <= set(words)
        assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ":"] == [3]
    arrows = [(text.xyann, text.xy) for text in above.texts if text.arrow_patch is not None]
    assert arrows == [((4, 2), (4, 1))]
    assert [text for text in below.texts if text.arrow_patch is not None] == []


def test_a_notebook_shows_the_picture_itself(shown):
    figure, _ = shown
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_who_cannot_see_a_picture_is_read_its_words():
    figure, _ = seen_over_time({"kept & <left>": JUMPS}, "hello")
    shown = figure._repr_html_()
    assert shown.startswith('<img alt="Figure: ')
    told = shown.partition('" src="data:image/png;base64,')[0]
    for word in ("crash 1", "restart", "kept &amp; &lt;left&gt;"):
        assert word in told
