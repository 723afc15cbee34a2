"""The picture of a job's pieces: it names each, says the same in its text, and draws no arrow into the void."""

import re
import xml.etree.ElementTree as ET

import pytest

from labkit.view.measure import width
from labkit.view.pieces import ARROWS, HIGH, PIECES, WIDE, Pieces

BUNDLE = Pieces()._repr_mimebundle_()


def test_picture_and_text_name_every_piece_and_what_a_crash_takes() -> None:
    for piece in PIECES:
        assert f">{piece.name}</text>" in BUNDLE["text/html"]
        assert piece.name in BUNDLE["text/plain"]
    assert BUNDLE["text/plain"].count("on disk, survives a crash") == 3
    assert BUNDLE["text/plain"].count("in memory, a crash takes it") == 4
    assert len(BUNDLE["text/plain"].splitlines()) == len(PIECES)


def test_the_alternative_text_says_what_the_picture_shows() -> None:
    root = ET.fromstring(Pieces().svg())
    assert root.get("role") == "img"
    description = root.find("{http://www.w3.org/2000/svg}desc")
    assert description.text == BUNDLE["text/plain"]


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.name)
def test_every_line_fits_into_its_box(piece) -> None:
    assert width(piece.name, 13, bold=True) <= WIDE - 28 - 4
    assert all(width(line, 11.5) <= WIDE - 14 for line in piece.does)


@pytest.mark.parametrize("arrow", ARROWS, ids=lambda arrow: arrow[0])
def test_every_arrow_leaves_one_box_and_touches_another(arrow) -> None:
    start, tip = (tuple(map(int, re.findall(r"\d+", path)[:2])) for path in arrow)
    assert _touched(*start)
    assert _touched(*tip)
    assert _touched(*start) != _touched(*tip)


def _touched(x: int, y: int) -> list[str]:
    return [piece.name for piece in PIECES if piece.x <= x <= piece.x + WIDE and piece.y <= y <= piece.y + HIGH]
