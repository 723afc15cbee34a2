"""What a real server said, for a person: cards in a notebook, and the same lines of text in every run.

An answer is shown as it came: who was asked, and the server's own words, rows or error.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from labkit.core.asked import takes
from labkit.core.errors import InvalidInput
from labkit.view.card import BAD, Card, Cell, Html, para, table

TITLE = "What the server answers"
REFUSED = "refused, "


@runtime_checkable
class Answered(Protocol):
    """What a server said: its text, and the parts of a card."""

    def parts(self) -> Sequence[Html]:
        """The answer as tables and paragraphs."""

    def __str__(self) -> str: ...


class Said(str):
    """One line of an answer, `name: words`, as text and as a card."""

    __slots__ = ()

    def parts(self) -> Sequence[Html]:
        """The line as a table of one row."""
        return [lines([self])]

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return said(self)._repr_mimebundle_()

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # noqa: FBT001  # IPython's protocol
        # Of a text IPython would else show the quotation marks, whatever the bundle says.
        printer.text(str(self))


def lines(answers: Iterable[str]) -> Html:
    """Lines of answers as a table: who, and what; what was refused stands out."""
    return table(("", ""), map(_row, answers))


def _row(line: str) -> tuple[str | Cell, ...]:
    who, colon, what = line.partition(": ")
    # A sentence may have a colon, too; a name, or a list of names, has no blank of its own.
    if not colon or " " in who.replace(", ", ""):
        who, what = "", line
    is_bad = what.startswith((REFUSED, "ERROR "))
    return who, Cell(what, BAD) if is_bad else what


@takes('lab.said(session.run("SELECT 1"), session.run("SELECT 2"))')
def said(*answers: Answered) -> Card:
    """Several answers of servers on one card, one below the other. Raises `InvalidInput` for none."""
    if not answers:
        raise InvalidInput('lab.said() needs an answer, as in lab.said(session.run("SELECT 1")).')
    return Card("", *_joined(answers), title=TITLE, plain=[line for each in answers for line in str(each).splitlines()])


def _joined(answers: Sequence[Answered]) -> Iterable[Html]:
    """The parts of all answers; lines that follow each other share a table."""
    waiting: list[str] = []
    for each in answers:
        if isinstance(each, Said):
            waiting.append(each)
            continue
        if waiting:
            yield lines(waiting)
            waiting = []
        yield from each.parts()
    if waiting:
        yield lines(waiting)


def rows(head: Sequence[str], body: Sequence[Sequence[Any]], none: str) -> list[Html]:
    """A table of rows; without a row the words that say so stand below its head."""
    found = table(head, body)
    return [found] if body else [found, para(none, kind="lkc-under")]
