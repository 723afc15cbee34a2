"""Read the player's static files from the installed package: style sheets and ESM modules."""

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """Return the text of one file of `labkit/view/static`."""
    return files("labkit.view").joinpath("static", name).read_text(encoding="utf-8")
