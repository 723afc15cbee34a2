"""An exercise that has moved keeps its learners: their progress, their cells, and the name that they know."""

import json

import pytest
from exercise_sources import all_sources

from labkit import lab
from labkit.cli import execute
from labkit.teach.exercises import check as checking
from labkit.teach.exercises import moved, progress
from labkit.teach.exercises.cells import select
from labkit.teach.exercises.registry import EXERCISES, assignments, find
from labkit.teach.exercises.standalone import opened
from labkit.teach.shipped import Cell

SOURCES = all_sources()


@pytest.fixture(autouse=True)
def _moved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_kept", {})
    monkeypatch.setattr(progress, "_unwritten", set())
    monkeypatch.setitem(moved.MOVED, "04-atomic", "05-atomic")


def test_every_line_leads_to_an_exercise_and_takes_no_name_of_one():
    for before, after in moved.MOVED.items():
        assert after in EXERCISES
        assert before not in EXERCISES


def test_it_is_found_and_one_sentence_says_so(capsys):
    assert find("04-atomic").name == "05-atomic"
    lab.hint("04-atomic")
    assert progress.of("05-atomic")["hints"] == 1
    assert capsys.readouterr().out.startswith("04-atomic has moved: it is 05-atomic now.\nHint 1")
    lab.check("04-atomic")
    lab.reset("04-atomic", confirm=True)
    said = capsys.readouterr().out
    assert said.count("04-atomic has moved") == 2
    assert "05-atomic: not attempted" in said
    assert "05-atomic: your answer" in said
    assert "# exercise 05-atomic" in said
    assert progress.of("05-atomic") == {}


def test_progress_is_carried_over_and_what_is_newer_wins(capsys, tmp_path):
    path = tmp_path / progress.NAME
    path.write_text(json.dumps({"04-atomic": {"state": "done", "points": 3}}))
    lab.progress("05")
    assert "done           3 of 3" in capsys.readouterr().out
    progress.note("05-atomic", points=2)
    assert list(json.loads(path.read_text())) == ["05-atomic"]
    assert progress.of("05-atomic") == {"state": "done", "points": 2}
    path.write_text(json.dumps({"05-atomic": {"points": 1}, "04-atomic": {"points": 3}}))
    assert progress.of("05-atomic") == {"points": 1}


def test_a_cell_with_the_name_before_counts():
    solution = SOURCES["05-atomic"][1].replace("05-atomic", "04-atomic")
    cells = [Cell(solution)]
    chosen = select(cells, [], {"05-atomic": "other"})
    assert (chosen.counts, chosen.strangers) == ({"05-atomic": 0}, [])
    of_others = select(cells, [], {"04-atomic": "other"})
    assert of_others.counts == {"04-atomic": 0}, "another course's own name"


def saved(path, *sources):
    cells = [{"cell_type": "code", "source": source, "metadata": {}} for source in sources]
    path.write_text(json.dumps({"cells": cells}))
    return path


def test_a_copy_from_before_is_still_the_notebook_that_it_was(tmp_path):
    both = saved(tmp_path / "mine.ipynb", "# exercise 04-align\n", "# exercise 04-atomic\n")
    assert {each.notebook for each in opened(both).exercises} == {"04_barriers"}
    one = saved(tmp_path / "other.ipynb", "# exercise 04-atomic\n")
    assert {each.notebook for each in opened(one).exercises} == {"05_two_phase_commit"}


def test_the_command_takes_the_name_before(tmp_path, capsys):
    solution = SOURCES["05-atomic"][1]
    path = saved(tmp_path / "mine.ipynb", solution)
    assert execute(["check", str(path), "--only", "04-atomic"]) == 0
    told = capsys.readouterr()
    assert told.err == "04-atomic has moved: it is 05-atomic now.\n"
    assert "05-atomic  passed" in told.out


def test_a_number_with_a_letter_is_a_notebook_of_its_own(capsys, monkeypatch):
    from dataclasses import replace

    known = assignments()
    other = replace(known["09-offsets"], name="09b-x", notebook="09b_timeouts")
    monkeypatch.setattr(checking, "assignments", lambda: known | {"09b-x": other})
    lab.progress("09")
    assert "09b-x" not in capsys.readouterr().out
    for asked in ("09b", "09b_timeouts"):
        lab.progress(asked)
        said = capsys.readouterr().out
        assert "09b-x" in said
        assert "09-offsets" not in said
