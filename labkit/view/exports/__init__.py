"""Export a space-time diagram as text that other tools draw: a format is one line in `FORMATS`."""

from collections.abc import Callable, Mapping

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.view import spacetime
from labkit.view.exports import sequence, shiviz
from labkit.view.spacetime import Diagram

FORMATS: Mapping[str, Callable[[Diagram, str], str]] = {
    "mermaid": lambda diagram, title: sequence.write(diagram, title, sequence.MERMAID),
    "plantuml": lambda diagram, title: sequence.write(diagram, title, sequence.PLANTUML),
    "shiviz": shiviz.write,
    "svg": lambda diagram, title: spacetime.svg(diagram, title=title),
}
"""For each format, the function that returns the text of a diagram with a title."""


def written(diagram: Diagram, title: str, to: str) -> str:
    """Return a diagram as text in the format `to`.

    Raises `InvalidInput` for an unknown format, and in some formats for a diagram without steps.
    """
    if to not in FORMATS:
        raise InvalidInput(f"there is no format {to[:40]!r}; {nearest(to[:40], list(FORMATS))}")
    return FORMATS[to](diagram, title)
