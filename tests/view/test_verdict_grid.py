"""The grid of verdicts: every cell is there, says what the judge said, and leads to its run."""

import itertools
import json
import re
from pathlib import Path

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.runs.expected import expectations
from labkit.runs.pages import grid
from labkit.runs.pages.grid import of_runs, simulated
from labkit.sim.trace import parse, replay
from labkit.view.assets import asset
from labkit.view.signs import LOOKS

SIMULATED = simulated()


def test_every_cell_of_the_grid_is_there_and_simulated_as_predicted():
    predicted = {
        cell: each
        for cell, each in expectations().items()
        if cell.store in {square.cell.store for square in SIMULATED.squares}
    }
    assert {square.cell for square in SIMULATED.squares} == set(predicted)
    for square in SIMULATED.squares:
        expected = predicted[square.cell]
        assert (square.guarantee, square.jumped_back) == (expected.guarantee, bool(expected.regression))


def test_a_simulated_cell_leads_to_its_trace():
    square = SIMULATED["two_phase on files, commit-then-log", "sink.mid_commit"]
    crashes = [action.name for action in replay(parse(square.run)).actions]
    assert crashes.count("crash") == 1
    assert f"lab.show(&#x27;{square.run}&#x27;)" in SIMULATED.html()


def test_a_cell_that_is_not_there_gets_one_sentence():
    with pytest.raises(InvalidInput, match="the grid has no cell"):
        SIMULATED["append on files", "sink.after_commit"]


def test_shades_keep_their_order_in_greyscale():
    def light(colour: str) -> float:
        red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
        return 0.3 * red + 0.59 * green + 0.11 * blue

    style = asset("verdict_grid.css")
    shades = [light(re.search(rf"\.lk-{name} {{ background: (#\w+)", style)[1]) for name in LOOKS if name != "unknown"]
    assert shades == sorted(shades, reverse=True)
    assert min(before - after for before, after in itertools.pairwise(shades)) > 10


def leave(base: Path, name: str, **changed) -> None:
    """What `labkit matrix` leaves of a run, as far as the grid reads it."""
    said = {
        "scenario": {"store": "files", "sink": "append", "order": "none"},
        "crashes": [{"point": "sink.after_pre_commit"}],
        "guarantee": "at-least-once",
        "regression": [0],
        "because": "3 of 3 <records> came out twice",
    }
    (base / name).mkdir(parents=True)
    (base / name / "verdict.json").write_text(json.dumps(said | changed))


def test_a_folder_of_runs_becomes_a_page_of_links(tmp_path, monkeypatch):
    leave(tmp_path / "runs", "append")
    leave(tmp_path / "runs", "two", crashes=[{"point": "sink.mid_write"}] * 2)
    early = {"crashes": [{"point": "source.after_offset_log"}], "guarantee": "exactly-once", "regression": []}
    leave(tmp_path / "runs", "early", **early)
    page = grid.write(tmp_path / "runs").read_text(encoding="utf-8")
    assert re.findall(r'<a href="([^"]+)">([^<]+)</a>', page) == [
        ("early/report.html", "✓ exactly-once"),
        ("append/report.html", "×2 at-least-once ↩"),
    ]
    assert "&lt;records&gt;" in page
    assert "://" not in page
    monkeypatch.chdir(tmp_path)
    bundle = lab.matrix("runs")._repr_mimebundle_()
    assert 'href="runs/append/report.html"' in bundle["text/html"]
    assert bundle["text/plain"].splitlines()[0].split() == [
        *(["append", "on", "files", "at", "source.after_offset_log"]),
        *("✓", "exactly-once"),
    ]


@pytest.mark.parametrize(
    ("content", "complaint"), [(None, "no run with a verdict"), ("{", "damaged"), ('{"scenario": 1}', "damaged")]
)
def test_a_folder_that_cannot_be_shown_gets_one_sentence(content, complaint, tmp_path):
    if content:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "verdict.json").write_text(content)
    with pytest.raises(InvalidInput, match=complaint):
        of_runs(tmp_path)
