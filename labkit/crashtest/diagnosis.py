"""The explanation of a weak result: why the subject of a test is weaker than exactly-once, and a repair."""

from typing import NamedTuple


class Recipe(NamedTuple):
    """A repair, and the notebook that explains it."""

    name: str
    sentence: str
    notebook: str


class Diagnosis(NamedTuple):
    """An explanation of a weak result: a short name for the kind of weakness, the reason, and the repair."""

    code: str
    why: str
    recipe: Recipe
