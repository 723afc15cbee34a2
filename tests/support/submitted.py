"""Submissions for the tests of the grader: notebooks of the sample course, as learners hand them in."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).parent.parent / "grading" / "sample"
COURSE = SAMPLE / "course.py"
NOTEBOOK = "01_sample"

RIGHT = {
    "01-double": "def double(number):\n    return 2 * number",
    "01-dedup": "def seen(table, record):\n    return record in table",
    "01-setting": 'setting = {"interval": 5}',
    "01-why": 'why = "Because the table is durable."',
}
WRONG = {
    "01-double": "def double(number):\n    return number + 1",
    "01-dedup": "def seen(table, record):\n    return record in table[-1:]",
    "01-setting": 'setting = {"interval": 50}',
}
ALL = tuple(RIGHT)
JUDGED = ALL[:3]


def notebook(*sources: str, metadata: Mapping[str, Any] | None = None) -> str:
    """A notebook of these code cells, as JSON."""
    cells = [
        {"cell_type": "code", "id": str(n), "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        for n, source in enumerate(sources)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    top = {"kernelspec": kernel, **(metadata or {})}
    return json.dumps({"cells": cells, "metadata": top, "nbformat": 4, "nbformat_minor": 5})


def answers(**given: str) -> list[str]:
    """The cells of a right submission, some of them replaced: `double=...` replaces that of 01-double."""
    return [marked(name, given.get(name.removeprefix("01-"), source)) for name, source in RIGHT.items()]


def marked(name: str, source: str) -> str:
    """A cell that says which exercise it answers."""
    return f"# exercise {name}\n{source}"


def released() -> list[dict[str, Any]]:
    """The cells of the notebook as it was released."""
    cells: list[dict[str, Any]] = json.loads((SAMPLE / "notebooks" / f"{NOTEBOOK}.ipynb").read_text())["cells"]
    return cells


def hand_in(folder: Path, student: str, sources: Sequence[str], name: str = NOTEBOOK) -> Path:
    """Writes a submission as a folder of that student."""
    path = folder / student / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook(*sources), encoding="utf-8")
    return path
