"""Write a space-time diagram as a sequence diagram of PlantUML (https://plantuml.com/sequence-diagram)."""

import re

from labkit.view.exports import sequence
from labkit.view.spacetime import Diagram

# Two of -, _, /, *, " or ~ are formatting in PlantUML, # or = at the beginning a list or a heading, /' is a comment, a
# backslash begins a line break, and % and $ call functions.
_UNSAFE = re.compile(r"[^\w .,:()=+#;/'!?-]|^[#=]|(?<=-)-|(?<=_)_|(?<=/)/|/(?=')")


def _escaped(text: str) -> str:
    # PlantUML decodes \ and then still takes \t for a tabulator; a space without width keeps them apart.
    coded = _UNSAFE.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)
    return coded.replace("<U+005C>t", "<U+005C><U+200B>t")


_DIALECT = sequence.Dialect(
    begin=("@startuml", "title {title}"),
    participant='participant "{text}" as {name}',
    note="note over {name} : {text}",
    arrow="{source} {line} {target} : {text}",
    sent="->>",
    lost="->x",
    under_way="-->>",
    at_once="->",
    escaped=_escaped,
    end=("@enduml",),
)


def write(diagram: Diagram, title: str) -> str:
    """Return a space-time diagram as the source of a PlantUML sequence diagram."""
    return sequence.write(diagram, title, _DIALECT)
