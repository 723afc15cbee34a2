"""Write a space-time diagram as a sequence diagram of Mermaid (https://mermaid.js.org/syntax/sequenceDiagram.html)."""

import re

from labkit.view.exports import sequence
from labkit.view.spacetime import Diagram

# Mermaid reads # and ; as the end of a text, %% as a comment, $$ as a formula, < as HTML, and wrap: at the beginning as
# an option.
_UNSAFE = re.compile(r"[^\w .,:()=+/'!?-]|(?<=^wrap):|(?<=^nowrap):")


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"#{ord(match[0])};", text)


_DIALECT = sequence.Dialect(
    begin=("sequenceDiagram", "    title {title}"),
    participant="    participant {name} as {text}",
    note="    Note over {name}: {text}",
    arrow="    {source}{line}{target}: {text}",
    sent="-)",
    lost="-x",
    under_way="--)",
    at_once="->>",
    escaped=_escaped,
)


def write(diagram: Diagram, title: str) -> str:
    """Return a space-time diagram as the source of a Mermaid sequence diagram."""
    return sequence.write(diagram, title, _DIALECT)
