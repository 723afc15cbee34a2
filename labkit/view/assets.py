"""The files of the player that lie in the wheel: style sheets and the one ESM module."""

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """The text of one file of `labkit/view/static`."""
    return files("labkit.view").joinpath("static", name).read_text(encoding="utf-8")
