"""The map of the course: its paths lead through notebooks that are there, in an order that their needs allow."""

import re
from functools import cache
from pathlib import Path

import build_notebooks
from reading import minutes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
SOURCES = {path.stem.partition("_")[0]: path for path in (ROOT / "notebooks" / "src").glob("*.py")}
MOST_MEETINGS, MOST_MINUTES, SHORT_PATH = 12, 50, 90


@cache
def taking(number: str) -> int:
    cells, expected, _ = build_notebooks.read(SOURCES[number])
    return minutes(cells, expected)[0]


@cache
def needs(number: str) -> set[str]:
    _, _, lab = build_notebooks.read(SOURCES[number])
    return {name.partition("_")[0] for name in lab.get("needs", [])}


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def meetings() -> list[list[str]]:
    rows = re.findall(r"^\| \d+ \| ([^|]+) \|", section("In a term of twelve meetings"), re.MULTILINE)
    return [row.split(", ") for row in rows]


def test_a_term_has_every_notebook_once_behind_what_it_needs() -> None:
    order = [number for meeting in meetings() for number in meeting]
    assert sorted(order) == sorted(SOURCES)
    for place, number in enumerate(order):
        assert needs(number) <= set(order[:place]), number


def test_a_meeting_has_time_for_its_notebooks() -> None:
    assert len(meetings()) == MOST_MEETINGS
    assert all(sum(map(taking, meeting)) <= MOST_MINUTES for meeting in meetings())


def test_the_short_path_is_short_and_says_what_it_leaves_out() -> None:
    text = section("In 90 minutes")
    first, _, rest = text.partition(".")
    path = re.findall(r"\d\d[a-z]?", first)
    assert sum(map(taking, path)) <= SHORT_PATH
    left_out = {each for number in path for each in needs(number)} - set(path)
    assert left_out == set(re.findall(r"\d\d[a-z]?", rest)) - set(path)


def test_every_notebook_answers_somebody_s_question() -> None:
    asked = section("Which notebook answers your question?")
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|$", asked, re.MULTILINE)
    answers = set(re.findall(r"\b\d\d[a-z]?\b", " ".join(rows)))
    assert answers == set(SOURCES)
