"""Build cards: a notebook shows a result as HTML without scripts, and a terminal shows it as a few lines of text.

Every function escapes plain text; only `Html`, the result of these functions, is inserted unchanged.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from labkit.core.words import columns
from labkit.view.assets import asset

MOST_LINES = 12
"""The largest number of lines of a card's plain text."""
LONGEST_LINE = 400
"""The largest number of characters in one line of plain text."""
MOST_BYTES = 50_000
"""The largest size of a card's HTML in bytes."""

GOOD, BAD, DIM = "good", "bad", "dim"
"""The tones (CSS classes) of a card's large word: the result is good, bad, or unknown."""


class Html(str):
    """A string that is already HTML and must not be escaped again."""

    __slots__ = ()


def tag(name: str, /, *inside: str, **attributes: str) -> Html:
    """Return an HTML element named `name`; its content and its attributes are escaped.

    In attribute names `_` becomes `-`, and a trailing `_` is dropped, so `class_` is the attribute `class`.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value
    )
    return Html(f"<{name}{pairs}>{joined(inside)}</{name}>")


def joined(parts: Iterable[str]) -> Html:
    """Concatenate the parts as HTML. Plain text is escaped, while `Html` stays unchanged."""
    return Html("".join(part if isinstance(part, Html) else escape(part, quote=False) for part in parts))


def para(*inside: str, kind: str = "") -> Html:
    """Return an HTML paragraph; `kind` is its CSS class."""
    return tag("p", *inside, class_=kind)


def code(text: str) -> Html:
    """Return a text, such as a program or a file, as preformatted HTML."""
    return tag("pre", tag("code", text))


class Cell(NamedTuple):
    """One cell of an HTML table. The cell's `tone` (`GOOD`, `BAD` or `DIM`) decides the colour of its text."""

    text: str
    tone: str = ""

    def __str__(self) -> str:
        return self.text


def table(head: Sequence[str], rows: Iterable[Sequence[str | Cell]]) -> Html:
    """Return an HTML table; a row's first cell is its heading. Without any text in `head`, it has no heading line."""
    top = joined(tag("th", name, scope="col") for name in head)
    body = joined(tag("tr", *_cells(row)) for row in rows)
    return tag(
        "div",
        tag("table", tag("thead", tag("tr", top)) if any(head) else Html(), tag("tbody", body)),
        class_="lkc-wide",
    )


def _cells(row: Sequence[str | Cell]) -> Iterable[Html]:
    for place, each in enumerate(row):
        text, tone = each if isinstance(each, Cell) else (each, "")
        if place:
            yield tag("td", tag("b", text) if tone else text, class_=tone)
        else:
            yield tag("th", text, scope="row")


def items(entries: Iterable[str]) -> Html:
    """Return an HTML list with one item for each entry."""
    return tag("ul", *(tag("li", each) for each in entries))


def fold(summary: str, *inside: str) -> Html:
    """Return an HTML `details` element: a click on `summary` shows the content `inside`."""
    return tag("details", tag("summary", summary), *inside)


def folds(each: Iterable[Html]) -> Html:
    """Return results of `fold` as HTML side by side. If a card cannot hold all of them, leave out the last ones."""
    kept, size = [], 0
    for one in each:
        size += len(one.encode())
        if size <= MOST_BYTES - 20_000:
            kept.append(one)
    return tag("div", *kept, class_="lkc-folds")


def section(title: str, *inside: str) -> Html:
    """Return a section of a page as HTML: a heading with the content below it."""
    return joined([tag("h2", title), *inside])


def document(title: str, style: str, *parts: str) -> str:
    """Return a complete HTML page. Its CSS is `style`. The page has no scripts and loads nothing from other hosts."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style>{joined(parts)}</html>\n"
    )


def beside(*parts: str) -> Html:
    """Return HTML that shows the parts side by side on a wide page, and one below the other on a narrow page."""
    return tag("div", *(tag("div", each) for each in parts if each), class_="lkc-row")


class Shown:
    """Base class of results that are HTML in notebooks and text elsewhere; subclasses define `html` and `__str__`."""

    def html(self) -> str:
        """Return the result as HTML that does not load any other file."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": str(self)}


class Drawn(Shown):
    """Base class of results that notebooks display as a picture; subclasses define `svg` and `__str__`."""

    def svg(self) -> str:
        """Return the picture as SVG, with its text form as the description for screen readers."""
        raise NotImplementedError

    def html(self) -> str:
        return f'<div style="max-width:100%;overflow-x:auto">{self.svg()}</div>'


class Card(Shown):
    """A card in a notebook, with a large word, a line under it and further HTML; a terminal shows lines of text."""

    def __init__(
        self, word: str, *parts: str, plain: Sequence[str], tone: str = "", title: str = "", under: str = ""
    ) -> None:
        self.word, self.parts, self.tone = word, parts, tone
        self.title, self.under, self.plain = title, under, plain

    def head(self) -> Html:
        """Return the upper part of the card as HTML: title, `word` in large letters, and the line `under` it."""
        word_kind = f"lkc-word {self.tone}".strip()
        lines = ((self.title, "lkc-title"), (self.word, word_kind), (self.under, "lkc-under"))
        return joined(para(text, kind=kind) for text, kind in lines if text)

    def html(self) -> str:
        """Return the whole card as HTML, with its CSS."""
        return framed(self.head(), *self.parts, label=self.title or self.word)

    def __str__(self) -> str:
        return text(self.plain)


class OnCard(Shown):
    """Base class of results that a notebook displays as a card; subclasses define `card`."""

    def card(self) -> Card:
        """Return the card that shows this result."""
        raise NotImplementedError

    def html(self) -> str:
        return self.card().html()

    def __str__(self) -> str:
        return "\n".join(self.card().plain)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return self.card()._repr_mimebundle_()


class Tabled(OnCard):
    """Base class of results that are displayed as a table; subclasses define `title`, `_head` and `_rows`."""

    title = ""
    under = ""

    def _head(self) -> Sequence[str]:
        raise NotImplementedError

    def _rows(self) -> Iterable[Sequence[str | Cell]]:
        raise NotImplementedError

    def _parts(self) -> Iterable[str]:
        # Subclasses override this if their card shows more than the table.
        return [table(self._head(), self._rows())]

    def card(self) -> Card:
        return Card("", *self._parts(), title=self.title, under=self.under, plain=str(self).splitlines())

    def __str__(self) -> str:
        return columns([self._head(), *(list(map(str, row)) for row in self._rows())])

    # Not the method of `OnCard`, whose plain text has at most `MOST_LINES` lines: a table is always shown whole.
    _repr_mimebundle_ = Shown._repr_mimebundle_


def framed(*parts: str, label: str) -> str:
    """Return the parts as HTML in a frame named `label`.

    The last parts are left out if the HTML would be longer than `MOST_BYTES`.
    """
    start = f'<div class="lkc" role="group" aria-label="{escape(label)}"><style>{asset("card.css")}</style>'
    kept = list(parts)
    while len(kept) > 1 and len((start + joined(kept)).encode()) + 200 > MOST_BYTES:
        kept.pop()
    if len(kept) < len(parts):
        kept.append(para("The rest is left out, because it is too long for a card.", kind="lkc-under"))
    return f"{start}{joined(kept)}</div>"


def text(lines: Sequence[str]) -> str:
    """Join the lines to one text for a terminal: at most `MOST_LINES` lines of at most `LONGEST_LINE` characters."""
    kept = list(lines)
    if len(kept) > MOST_LINES:
        left = len(kept) - MOST_LINES + 1
        kept = [*kept[: MOST_LINES - 1], f"... {left} more lines"]
    return "\n".join(line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 4]} ..." for line in kept)


def counted(counts: Mapping[str, int]) -> str:
    """Return counts as text: {"lost": 0, "jump|jumps": 2} gives `0 lost, 2 jumps` (see `plural`)."""
    return ", ".join(f"{number:,} {plural(name, number)}" for name, number in counts.items())


def plural(name: str, number: int) -> str:
    """Return the form of a word that fits the number: of `row|rows`, `row` for 1 and `rows` for any other number."""
    one, _, many = name.partition("|")
    return one if number == 1 or not many else many
