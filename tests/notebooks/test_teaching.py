"""What docs/teaching quotes of a notebook stands in that notebook, word for word: in its text, its code or
its outputs.
"""

import re
from pathlib import Path

import jupytext
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "teaching").glob("[0-9]*.md"))
READING = "\n## Read by"
"""Behind this heading stands what a reader said, and what was mended."""


def bare(text: str) -> str:
    """A text without blanks, and without the marks of a quoted block at the beginnings of its lines."""
    return re.sub(r"\s+", "", re.sub(r"(?m)^\s*> ?", "", text))


def told(name: str) -> str:
    """The text of a notebook, the code that a learner sees, and what its cells print."""
    source = (ROOT / "notebooks" / "src" / f"{name}.py").read_text(encoding="utf-8")
    cells = jupytext.reads(source, fmt="py:percent").cells
    shown = (each.source for each in cells if not {"solution", "checked"} & set(each.metadata.get("tags", [])))
    return "\n".join(map(bare, shown))


def quoted(page: str) -> list[str]:
    """What a page quotes: blocks, and what begins and ends with a quotation mark; ` ... ` stands for what was
    left out.
    """
    found: list[str] = []
    for block in re.split(r"\n\s*\n", page.partition(READING)[0]):
        text = " ".join(block.split())
        if not block.startswith("   "):
            continue
        if text.startswith("> "):
            found += re.split(r"\s\.\.\.\s", re.sub(r"(?m)^\s*> ?", "", block))
        # Only the first mark behind a blank opens a quotation: quotations hold marks of their own.
        elif (whole := re.search(r'(?:^|: )"(.*)"$', text)) is not None:
            found += re.split(r'" \.\.\. "| \.\.\. ', whole[1])
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_quotation_stands_in_its_notebook(path: Path) -> None:
    quotations = quoted(path.read_text(encoding="utf-8"))
    assert len(quotations) >= 10, "every question has its answer"
    text = told(path.stem)
    assert [each for each in quotations if bare(each) not in text] == []


def test_a_quotation_is_found_and_a_wrong_one_is_told() -> None:
    page = """# Teaching

1. **Why "so"?**

   "The **log** says
   offset 3." ... "It is \"read\" ... again."

   Two lines: "One." ... "Two."

   > A block.
   > It goes on.

   Changed: nothing; it is called "log" now.

## Read by somebody else

   "Not a quotation."
"""
    assert quoted(page) == [
        "The **log** says offset 3.",
        'It is "read"',
        "again.",
        "One.",
        "Two.",
        "A block.\nIt goes on.",
    ]
    assert bare("> A\n> b c") == "Abc"
