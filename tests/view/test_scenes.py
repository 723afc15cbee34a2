"""Every model has a picture, of every state, in which nothing lies upon anything else and nothing is cut."""

import random
import re
import xml.etree.ElementTree as ET
from itertools import combinations, islice

import pytest
from build_pictures import GOLDEN, STILLS, STYLE, pictures, player, stills

from labkit.sim.explore import reachable, walk
from labkit.sim.model import declared
from labkit.sim.models import MODELS
from labkit.sim.models.two_phase_commit.state import Participant
from labkit.sim.scenarios import every
from labkit.sim.trace import make, replay
from labkit.view.layout import PAD, TITLE, Rect, head, layout, mark_width
from labkit.view.measure import width, wrap
from labkit.view.scene import Kind, draw, field, lanes
from labkit.view.scenes import DRAWINGS
from labkit.view.stepper import still
from labkit.view.svg import picture, pieces

SMALL = {
    "delivery": [{}, {"dedup": "volatile"}, {"dedup": "connection", "productions": "weak"}, {"ids": "fresh"}],
    "snapshot": [{}, {"algorithm": "stop_the_world"}, {"processes": 5, "transfers": 2}],
    "barriers": [{}, {"mode": "unaligned"}, {"sink": "append", "words": "hello-world"}, {"counts": 1}],
    "two_phase_commit": [{}, {"textbook": True}, {"participants": 8, "textbook": True}, {"broken": "heuristic"}],
    "pipeline": [
        {"strategy": "wal"},
        {"strategy": "append", "zombies": 1},
        {"strategy": "batch_marker", "deletions": 1},
        {"strategy": "idempotent", "store": "sqlite"},
        {"expiries": 1, "lost_notices": 1, "rollbacks": 1, "records_per_batch": 1},
    ],
    "changelog": [{}, {"encoding": "upsert", "losses": 1}, {"writes": "delete_insert"}],
    "kafka_log": [{}, {"zombies": 1, "others": 1}, {"naming": "one", "partitions": 1}],
    "orders": [
        {},
        {"order": "notice-visible-decision", "input": "gone"},
        {"order": "plan-state-staged-decision-visible_marker", "output": "transaction", "leftover": "decided"},
    ],
}
"""Configurations that show every kind of box and channel; other models are drawn with their defaults alone."""
CASES = [(name, given) for name in MODELS for given in SMALL.get(name, [{}])]
STATES = 200
"""States of each small configuration that are drawn: from the beginning, breadth first."""


def texts_of(drawn):
    """Every text of a drawn piece: its place, its class, and what it says."""
    found = re.findall(r'<text x="([-\d.]+)" y="([-\d.]+)"(?: class="([^"]*)")?>([^<]*)</text>', drawn)
    return [(float(x), float(y), kind, text) for x, y, kind, text in found]


def test_every_model_has_a_picture():
    assert set(DRAWINGS) == set(MODELS)
    assert set(SMALL) <= set(MODELS)


@pytest.mark.parametrize(("name", "given"), CASES, ids=str)
def test_every_state_can_be_drawn_and_nothing_overlaps(name, given):
    model = make(name, given)
    states = list(islice(reachable(model, max_states=STATES), STATES))
    chance = random.Random(7)
    states += replay(walk(model, chance.randrange, 60)[0]).states
    scenes = [draw(DRAWINGS[name], model, state) for state in states]
    place = layout(scenes)
    edges = Rect(0, 0, place.width, place.height)
    for one, other in combinations(place.boxes.values(), 2):
        assert not one.overlaps(other)
    for box in place.boxes.values():
        assert edges.x <= box.x
        assert box.x + box.width <= edges.width
        assert box.y + box.height <= edges.height
    for scene in scenes:
        for box in scene.boxes:
            check_box(box, place)
        check_channels(scene, place)
        assert "None" not in "".join(pieces(scene, place).values())


def check_box(box, place):
    """Whether all that a box says lies within it, line by line."""
    at = place.boxes[box.id]
    inner = at.width - 2 * PAD
    title, _ = head(box, inner)
    marks = sum(mark_width(mark) + 4 for mark in box.marks)
    assert all(width(line, TITLE, bold=True) + marks <= inner + 0.1 for line in title)
    drawn = pieces_of(box, place)
    lines = {}
    for x, y, kind, text in texts_of(drawn):
        bold = any(each in kind.split() for each in ("v", "h", "n", "tb"))
        wide = width(text, 13 if "h" in kind.split() else 11.5, bold=bold)
        left = x - wide if "le" in kind else x - wide / 2 if kind in ("n", "m") else x
        assert left >= at.x, (box.id, text)
        assert left + wide <= at.x + at.width + 0.1, (box.id, text)
        assert at.y < y < at.y + at.height, (box.id, text)
        lines.setdefault(y, []).append((left, left + wide, text))
    for line in lines.values():
        for (_, right, one), (left, _, other) in zip(sorted(line), sorted(line)[1:], strict=False):
            assert right <= left + 1, (box.id, one, other)


def pieces_of(box, place):
    from labkit.view.svg import _box

    return _box(box, place.boxes[box.id], place.heads[box.id])


def check_channels(scene, place):
    """Whether what is in the channels lies between boxes, no two upon each other."""
    taken = []
    drawn = pieces(scene, place)
    for channel in scene.channels:
        for x, y, kind, text in texts_of(drawn[channel.id]):
            wide = width(text, 11, bold=kind in ("n", "w"))
            left = x - wide / 2 if kind in ("n", "m") else x
            taken.append((Rect(left, y - 9, wide, 11), text))
    for (one, text), (other, said) in combinations(taken, 2):
        assert not one.overlaps(other), (text, said)
    for at, text in taken:
        assert at.x >= 0, text
        assert not any(at.overlaps(box) for box in place.boxes.values()), text


def test_a_row_says_of_a_field_what_its_class_declares():
    participant = Participant()
    for name, mark in declared(Participant).items():
        assert field(participant, name, "label").kind is Kind(mark)
    with pytest.raises(KeyError):
        field(participant, "locks", "label")


def volatile_values(scene):
    return {
        (box.id, row.label): (row.value, row.tokens)
        for box in scene.boxes
        for row in box.rows
        if row.kind is Kind.VOLATILE
    }


def durable_rows(scene):
    """What is called durable; that a message was read is the reader's knowledge, so fading does not count."""
    return {
        (box.id, row.label): (row.value, [token.name.removesuffix(", read") for token in row.tokens])
        for box in scene.boxes
        for row in box.rows
        if row.kind is Kind.DURABLE
    }


@pytest.mark.parametrize("name", every())
def test_a_crash_changes_no_durable_row(name):
    """What a picture calls durable, the crash leaves as it was: the picture and the model agree."""
    trace = every()[name].trace
    walked = replay(trace)
    drawing = DRAWINGS[trace.model]
    for number, action in enumerate(trace.actions):
        if drawing.place(walked.model, action).event != "crash":
            continue
        before, after = (draw(drawing, walked.model, walked.states[number + more]) for more in (0, 1))
        kept = [durable_rows(scene) for scene in (before, after)]
        assert kept[0] == {row: kept[1][row] for row in kept[0]}, (name, number)
        assert volatile_values(before) != volatile_values(after), (name, number)


def test_lines_of_a_diagram_keep_their_names():
    scenes = [draw(DRAWINGS["pipeline"], make("pipeline", {}), make("pipeline", {}).initial())]
    assert list(lanes(scenes)) == ["folder", "driver", "store", "reader"]


def test_text_is_measured_on_the_safe_side_and_wrapped():
    assert width("hello", 10) == pytest.approx(24.2)
    assert width("hello", 10, bold=True) > width("hello", 10)
    assert width("日本", 10) > 20
    lines = wrap("one two-three " + "x" * 50, 11, 80)
    assert len(lines) > 5
    assert all(width(line, 11) <= 80 for line in lines)
    assert "".join("".join(lines).split()) == "onetwo-three" + "x" * 50


@pytest.mark.parametrize("name", list(pictures()))
def test_pictures_are_as_they_were(name):
    """After a change that is meant: python tools/build_pictures.py, and look at what it drew."""
    assert pictures()[name] == (GOLDEN / name).read_text(encoding="utf-8")


def test_a_picture_stands_alone():
    drawn = still(player("barriers.alignment").story, 12)
    assert STYLE in drawn
    assert drawn.startswith("<svg xmlns=")
    assert "<title>" in drawn
    assert "<desc>" in drawn
    assert "url(" not in drawn
    assert "script" not in drawn
    assert picture(draw(DRAWINGS["snapshot"], make("snapshot", {}), make("snapshot", {}).initial()))


def test_the_stills_of_the_readme_are_in_step_and_need_nothing_else():
    """After a change that is meant: python tools/build_pictures.py --stills, and look at what it drew."""
    drawn = stills()
    by_hand = {"one_kill.svg"}
    assert {path.name for path in STILLS.glob("*.svg")} == set(drawn) | by_hand
    for name, text in drawn.items():
        assert (STILLS / name).read_text(encoding="utf-8") == text
        assert "light-dark" not in text  # not every renderer of a page knows it
        assert "prefers-color-scheme: dark" in text
        assert len(text) < 40_000
        ET.fromstring(text)
    assert drawn["jump_back.svg"].count("jumps back") == 2
    assert "hello = 1" in drawn["stepper.svg"]
