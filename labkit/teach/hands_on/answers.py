"""Show the answers of a real server: as cards in a notebook, and as the same lines of text everywhere else.

An answer appears unchanged: the name of the session, and the server's own message, rows or error.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from typing import Any

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.view.card import BAD, Card, Cell, Html, OnCard, para, table

TITLE = "What the server answers"
REFUSED = "refused, "


class Answered(OnCard):
    """A server's answer, which can be shown as text or in a card."""

    def parts(self) -> Sequence[Html]:
        """Return the answer as HTML tables and paragraphs."""
        raise NotImplementedError

    def card(self) -> Card:
        return said(self)


class ServerAnswer(Answered, str):
    """A server's answer in one line of the form `session: message`; a notebook displays it as a table."""

    __slots__ = ()
    __str__ = str.__str__
    __repr__ = str.__repr__

    def parts(self) -> Sequence[Html]:
        """Return the line as an HTML table with one row."""
        return [lines([self])]

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # noqa: FBT001  # IPython's protocol
        # IPython would print a `str` with quotation marks, whatever the other formats say.
        printer.text(str(self))


def lines(answers: Iterable[str]) -> Html:
    """Return lines of the form `session: message` as an HTML table; errors and refusals are highlighted."""
    return table(("", ""), map(_row, answers))


def _row(line: str) -> tuple[str | Cell, ...]:
    name, colon, what = line.partition(": ")
    # A colon after a blank belongs to a sentence, because a session's name contains no blank ("a, b" are two names).
    if not colon or " " in name.replace(", ", ""):
        name, what = "", line
    is_bad = what.startswith((REFUSED, "ERROR "))
    return name, Cell(what, BAD) if is_bad else what


@takes('lab.said(session.run("SELECT 1"), session.run("SELECT 2"))')
def said(*answers: Answered) -> Card:
    """Return one card that shows several answers of servers, one below the other, such as results of `session.run`.

    Raises `InvalidInput` without an answer.
    """
    if not answers:
        raise InvalidInput('lab.said() needs a reply of a server, as in lab.said(session.run("SELECT 1")).')
    return Card("", *_joined(answers), title=TITLE, plain=[line for each in answers for line in str(each).splitlines()])


def _joined(answers: Sequence[Answered]) -> Iterable[Html]:
    for are_lines, group in groupby(answers, key=lambda each: isinstance(each, ServerAnswer)):
        if are_lines:
            yield lines(map(str, group))
        else:
            yield from chain.from_iterable(each.parts() for each in group)


def rows(head: Sequence[str], body: Sequence[Sequence[Any]], none: str) -> list[Html]:
    """Return an HTML table with the headings `head` and the rows `body`; the text `none` follows an empty table."""
    result = table(head, body)
    return [result] if body else [result, para(none, kind="lkc-under")]
