"""The frame of a card: a result in a notebook as HTML that needs no script, and the same as a few lines of text.

Every part escapes what it is given; only what these functions made is taken as it is. A card says what it was handed.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from labkit.view.assets import asset

MOST_LINES = 12
"""Lines of a card's plain text."""
LONGEST_LINE = 400
"""Characters of one line of plain text."""
MOST_BYTES = 50_000
"""Of a card's HTML."""

GOOD, BAD, DIM = "good", "bad", "dim"
"""The tones of a large word: all is well, something is wrong, nothing is known."""


class Html(str):
    """Text that is markup already, because a function of this module made it."""

    __slots__ = ()


def tag(name: str, /, *inside: str, **attributes: str) -> Html:
    """An element. Text inside and attributes are escaped; `class_` is the attribute `class`."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value
    )
    return Html(f"<{name}{said}>{joined(inside)}</{name}>")


def joined(parts: Iterable[str]) -> Html:
    """Several pieces one behind the other, text among them escaped."""
    return Html("".join(part if isinstance(part, Html) else escape(part, quote=False) for part in parts))


def para(*inside: str, kind: str = "") -> Html:
    """A paragraph."""
    return tag("p", *inside, class_=kind)


def code(text: str) -> Html:
    """Lines of a program or a file, as they are."""
    return tag("pre", tag("code", text))


class Cell(NamedTuple):
    """A cell of a table that has a tone of its own."""

    text: str
    tone: str = ""


def table(head: Sequence[str], rows: Iterable[Sequence[str | Cell]]) -> Html:
    """A table whose first column names its rows; without any heading there is no head."""
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


def items(entries: Iterable[str], kind: str = "") -> Html:
    """A list of sentences."""
    return tag("ul", *(tag("li", each) for each in entries), class_=kind)


def fold(summary: str, *inside: str) -> Html:
    """What is shown only when it is asked for."""
    return tag("details", tag("summary", summary), *inside)


def folds(each: Iterable[Html]) -> Html:
    """Several folds in one line, as long as they are closed. Whichever do not fit into a card are left out."""
    kept, size = [], 0
    for one in each:
        size += len(one.encode())
        if size <= MOST_BYTES - 20_000:
            kept.append(one)
    return tag("div", *kept, class_="lkc-folds")


def section(title: str, *inside: str) -> Html:
    """Parts of a page under a heading."""
    return joined([tag("h2", title), *inside])


def document(title: str, style: str, *parts: str) -> str:
    """A whole page with its style sheet: one file without a script, which asks nothing of another host."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style>{joined(parts)}</html>\n"
    )


def beside(*parts: str) -> Html:
    """Parts side by side, one below the other where there is no room."""
    return tag("div", *(tag("div", each) for each in parts if each), class_="lkc-row")


class Card:
    """One result: a large word, what is said under it, parts, folds, and all of it as text."""

    def __init__(
        self, word: str, *parts: str, plain: Sequence[str], tone: str = "", title: str = "", under: str = ""
    ) -> None:
        self.word, self.parts, self.tone = word, parts, tone
        self.title, self.under, self.plain = title, under, plain

    def head(self) -> Html:
        """Title, the large word and the line under it."""
        return joined(
            [
                para(self.title, kind="lkc-title") if self.title else Html(),
                para(self.word, kind=f"lkc-word {self.tone}".strip()) if self.word else Html(),
                para(self.under, kind="lkc-under") if self.under else Html(),
            ]
        )

    def html(self) -> str:
        """The card with its style sheet."""
        return framed(self.head(), *self.parts, label=self.title or self.word)

    def __str__(self) -> str:
        return text(self.plain)

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return bundle(self.html(), str(self))


def framed(*parts: str, label: str) -> str:
    """Parts in a frame, with the style sheet. Folds give way where the card would become too large."""
    start = f'<div class="lkc" role="group" aria-label="{escape(label)}"><style>{asset("card.css")}</style>'
    kept = list(parts)
    while len(kept) > 1 and _bytes(start, kept) > MOST_BYTES:
        kept.pop()
    if len(kept) < len(parts):
        kept.append(para("There is more, too much for a card.", kind="lkc-under"))
    return f"{start}{joined(kept)}</div>"


def _bytes(start: str, parts: Iterable[str]) -> int:
    return len((start + joined(parts)).encode()) + 200


def text(lines: Sequence[str]) -> str:
    """Lines for a terminal: not more than `MOST_LINES`, and none that is endless."""
    kept = list(lines)
    if len(kept) > MOST_LINES:
        left = len(kept) - MOST_LINES + 1
        kept = [*kept[: MOST_LINES - 1], f"... {left} more lines"]
    return "\n".join(line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 4]} ..." for line in kept)


def bundle(html: str, plain: str) -> dict[str, str]:
    """What IPython asks a result for."""
    return {"text/html": html, "text/plain": plain}


def counted(counts: Mapping[str, int]) -> str:
    """`0 lost, 3 twice, 1 jump back`; the plural of a name stands behind a bar: `jump|jumps`."""
    return ", ".join(f"{number:,} {plural(name, number)}" for name, number in counts.items())


def plural(name: str, number: int) -> str:
    """The word for so many; `row|rows` gives both forms."""
    one, _, many = name.partition("|")
    return one if number == 1 or not many else many
