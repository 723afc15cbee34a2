"""The notebooks on real servers: their form, and cells that are run out of order."""

from pathlib import Path

import jupytext
import pytest
from nbformat import NotebookNode

from labkit.core.errors import InvalidInput

ROOT = Path(__file__).parents[2]
NAMES = ("08_postgres", "09_kafka")
STARTING = ("lab.postgres()", "lab.kafka()")


def text(name: str) -> str:
    return (ROOT / "notebooks" / "src" / f"{name}.py").read_text(encoding="utf-8")


def shown(name: str) -> list[NotebookNode]:
    """The cells of the notebook itself, without its exercises."""
    exercise = {"task", "exercise", "solution", "check"}
    found = jupytext.reads(text(name), fmt="py:percent").cells
    return [
        cell
        for cell in found
        if cell.cell_type != "raw" and not exercise & set(cell.metadata.get("tags", []))
    ]


def cells(name: str) -> list[str]:
    return [cell.source for cell in shown(name) if cell.cell_type == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_runs_alone_or_names_the_cell_that_comes_first(name: str) -> None:
    refused = 0
    for source in cells(name):
        if any(start in source for start in STARTING) and "lab.need(" not in source:
            continue  # it starts a server
        if "lab.need(" in source:
            with pytest.raises(InvalidInput, match="run that cell first"):
                exec(compile(source, name, "exec"), {})
            refused += 1
        else:
            exec(compile(source, name, "exec"), {})
    assert refused > len(cells(name)) / 2


@pytest.mark.parametrize("name", NAMES)
def test_it_is_short_and_asks_before_it_runs(name: str) -> None:
    assert len(shown(name)) <= 45
    assert (
        max(
            len([line for line in code.splitlines() if line.strip()])
            for code in cells(name)
        )
        <= 10
    )
    assert text(name).count("lab.explorer(") == 1
    assert "What popular notes get wrong" in text(name)
    assert 3 <= text(name).count("\n# **") <= 8
    assert text(name).count("lab.predict(") + text(name).count("_predictions = {") >= 6
