"""Read the style sheets and scripts (ESM modules) of the player from the installed package."""

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """Return the text of one file in `labkit/view/static`, such as a script or a style sheet."""
    return files("labkit.view").joinpath("static", name).read_text(encoding="utf-8")
