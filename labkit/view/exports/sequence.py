"""Write a space-time diagram as the text of a sequence diagram for Mermaid or PlantUML.

A sequence diagram draws every message as a horizontal arrow. For a message that is under way for several steps, the
arrow is where the message arrives or is lost, and its text names the step that sent the message.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from labkit.sim.rules import Event
from labkit.view.spacetime import Diagram, Flight, signed


class Dialect(NamedTuple):
    """The syntax of one tool for sequence diagrams, as templates with placeholders in braces.

    `arrow` has the placeholders {source}, {line}, {target} and {text}. {line} is the kind of arrow, from one of these
    fields: `sent` for a message that arrives later, `lost` for a lost message, `under_way` for a message that has not
    arrived by the end, and `at_once` for a step that affects another process directly.
    """

    begin: Sequence[str]
    participant: str
    note: str
    arrow: str
    sent: str
    lost: str
    under_way: str
    at_once: str
    escaped: Callable[[str], str]
    """Returns a text with its special characters escaped, so that the tool shows the text unchanged."""
    end: Sequence[str] = ()


# Mermaid reads # and ; as the end of a text, %% as a comment, $$ as a formula, < as HTML, and wrap: at the beginning as
# an option.
_UNSAFE_IN_MERMAID = re.compile(r"[^\w .,:()=+/'!?-]|(?<=^wrap):|(?<=^nowrap):")

MERMAID = Dialect(
    begin=("sequenceDiagram", "    title {title}"),
    participant="    participant {name} as {text}",
    note="    Note over {name}: {text}",
    arrow="    {source}{line}{target}: {text}",
    sent="-)",
    lost="-x",
    under_way="--)",
    at_once="->>",
    escaped=lambda text: _UNSAFE_IN_MERMAID.sub(lambda match: f"#{ord(match[0])};", text),
)
"""The syntax of Mermaid (https://mermaid.js.org/syntax/sequenceDiagram.html)."""

# In PlantUML, a doubled -, _, /, *, " or ~ is formatting, # or = at the beginning is a list or a heading, /' starts a
# comment, a backslash starts a line break, and % and $ call functions.
_UNSAFE_IN_PLANTUML = re.compile(r"[^\w .,:()=+#;/'!?-]|^[#=]|(?<=-)-|(?<=_)_|(?<=/)/|/(?=')")


def _escaped(text: str) -> str:
    # PlantUML decodes \ and then still takes \t for a tabulator; a space without width keeps them apart.
    coded = _UNSAFE_IN_PLANTUML.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)
    return coded.replace("<U+005C>t", "<U+005C><U+200B>t")


PLANTUML = Dialect(
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
"""The syntax of PlantUML (https://plantuml.com/sequence-diagram)."""


def write(diagram: Diagram, title: str, dialect: Dialect) -> str:
    """Return a space-time diagram as the source of a sequence diagram in the syntax of `dialect`."""
    return "".join(f"{line}\n" for line in _lines(diagram, title, dialect))


def _lines(diagram: Diagram, title: str, dialect: Dialect) -> Iterator[str]:
    names = {lane: f"p{number}" for number, lane in enumerate(diagram.lanes, start=1)}

    def arrow(source: str, line: str, target: str, text: str) -> str:
        return dialect.arrow.format(source=names[source], line=line, target=names[target], text=dialect.escaped(text))

    yield from (line.format(title=dialect.escaped(title)) for line in dialect.begin)
    for lane, words in diagram.lanes.items():
        yield dialect.participant.format(name=names[lane], text=dialect.escaped(words))
    arriving: dict[int, list[Flight]] = {}
    for flight in diagram.flights:
        if flight.source in names and flight.target in names:
            arriving.setdefault(min(flight.received, len(diagram.steps) + 1), []).append(flight)
    for number, step in enumerate(diagram.steps, start=1):
        for flight in arriving.get(number, ()):
            line, word = (dialect.lost, "lost: ") if flight.lost else (dialect.sent, "")
            yield arrow(flight.source, line, flight.target, f"{word}{flight.token.name}{_since(flight)}")
        sentence = f"{number}. {signed(step)}"
        others = [name for name in (*step.touches, *step.changes) if name in names]
        # The sentence of an ordinary step is written at its arrow to another process. Any other step gets a note.
        if not others or step.event is not Event.STEP:
            yield dialect.note.format(name=names[step.lane], text=dialect.escaped(sentence))
            sentence = f"step {number}"
        for other in others:
            yield arrow(step.lane, dialect.at_once, other, sentence)
            sentence = f"step {number}"
    for flight in arriving.get(len(diagram.steps) + 1, ()):
        yield arrow(flight.source, dialect.under_way, flight.target, f"under way: {flight.token.name}{_since(flight)}")
    yield from dialect.end


def _since(flight: Flight) -> str:
    return f" (sent in step {flight.sent})" if flight.sent else " (there from the beginning)"
