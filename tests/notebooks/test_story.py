"""Every notebook begins with a ticket and ends by closing it, and the text behind each answer is folded."""

import re

import build_notebooks
import nbformat
import pytest
from leaks import about

ROOT = build_notebooks.Path(__file__).parents[2]
SOURCES = build_notebooks.sources(ROOT)
TICKET = re.compile(r"> \*\*Ticket (\d+)\*\* \((invented|real)")


def texts(source: build_notebooks.Path) -> list[str]:
    cells, _, _ = build_notebooks.read(source)
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


def test_every_notebook_has_a_ticket_of_its_own_and_closes_it() -> None:
    numbers = []
    for source in SOURCES:
        first, last = texts(source)[0], texts(source)[-1]
        opened = TICKET.search(first)
        assert opened, source.stem
        assert first.index(opened[0]) < first.index("{head}"), f"{source.stem}: not on the first screen"
        closing = last.partition("## Closing the ticket")[2]
        assert f"> **Ticket {opened[1]}, closed.**" in closing, source.stem
        assert opened[2] == "invented" or "](https://" in first, f"{source.stem}: a real incident has a source"
        numbers.append(int(opened[1]))
    assert numbers == list(range(1, len(SOURCES) + 1))


def test_what_was_found_in_the_wild_has_a_source() -> None:
    boxes = [box for source in SOURCES for text in texts(source) for box in re.findall(r"(?m)(?:^>.*\n?)+", text)]
    wild = [box for box in boxes if "Found in the wild" in box]
    assert len(wild) >= 5
    assert all("](https://" in box for box in wild)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_text_behind_an_answer_is_folded_up_to_the_next_heading(source: build_notebooks.Path) -> None:
    """In the learner's copy as it lies there, before anything has run."""
    cells = nbformat.read(ROOT / "notebooks" / f"{source.stem}.ipynb", as_version=4).cells
    waiting: list[str] = []
    for cell in cells:
        waiting += about(cell, "answer")
        if cell.cell_type == "markdown" and waiting:
            if not cell.source.startswith("#"):
                fold, _, rest = cell.source.partition("\n</details>")
                assert fold.startswith(f'<details class="{" ".join(f"lk-after-{name}" for name in waiting)}">'), waiting
                assert not rest.strip() or rest.strip().startswith("#"), waiting
            waiting = []
    assert not waiting


def test_a_comment_in_a_program_is_no_heading() -> None:
    text = "It was six.\n\n```python\n# a comment\n```\n\n## Next\n\nmore"
    folded = build_notebooks.folded(text, ["00-rows"])
    assert folded.partition("</details>")[0].count("# a comment") == 1
    assert folded.endswith("## Next\n\nmore")
    assert build_notebooks.folded(text, []) == text
