"""Check that notebooks explain each word of the glossary, in bold, at its first use.

It reads the text of the notebooks in the course's order: without code, addresses, headings, the box with others' names,
and the list of aims in the first cell, which names words that come later.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from labkit.teach.glossary import Entry

MEANING_WORDS = 8
"""The least number of other words in a paragraph that explains a word; "That is called **lag**." is too short."""
NAMES = "## What this is called in"
"""The heading of the box with other systems' names, which may be words that come later."""
_BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
_CODE = re.compile(r"`([^`]*)`")
_END = re.compile(r"[.:?!|](?=\s|$)|\n\s*\n|\n\s*[-*>]\s")


class Use(NamedTuple):
    """A place where a word is used."""

    notebook: str
    cell: int
    is_bold: bool
    sentence: str
    beside: int
    """The number of other words in the paragraph."""


def complaints(texts: Mapping[str, Sequence[str]], entries: Mapping[str, Entry]) -> list[str]:
    """Return a sentence for each mistake. `texts` are each notebook's Markdown cells, empty where a cell is code."""
    readable = {
        name: [_readable(text, is_first=not place) for place, text in enumerate(cells)] for name, cells in texts.items()
    }
    learned = [entry for entry in entries.values() if entry.notebook]
    results: list[str] = []
    for entry in learned:
        results += _of_entry(entry, list(_uses(entry, learned, readable)), set(texts))
    return results


def _of_entry(entry: Entry, uses: Sequence[Use], read: set[str]) -> Iterator[str]:
    word, home = entry.word, entry.notebook
    bold = [use for use in uses if use.is_bold]
    for use in bold[1:]:
        yield f"{_place(use)}: **{word}** is bold again; it is explained in {_place(bold[0])}."
    first = uses[0] if uses else None
    if first is not None and first.notebook < home:
        yield (
            f"{_place(first)}: {word!r} is used, and {home} is to explain it: explain it here and "
            "say so in glossary.toml, "
            f"or take another word ({_short(first.sentence)})."
        )
    elif home in read and not bold:
        yield f"{home}: it is to explain {word!r}, and has no **{word}** with a sentence on it."
    elif bold and bold[0].notebook != home:
        yield f"{_place(bold[0])}: **{word}** is explained here, and glossary.toml says {home}."
    elif bold and first is not None and not first.is_bold:
        yield (f"{_place(first)}: {word!r} is used above its meaning in {_place(bold[0])} ({_short(first.sentence)}).")
    elif bold and bold[0].beside < MEANING_WORDS:
        yield f"{_place(bold[0])}: **{word}** has no meaning beside it ({_short(bold[0].sentence)})."


def _uses(entry: Entry, learned: Sequence[Entry], texts: Mapping[str, Sequence[str]]) -> Iterator[Use]:
    """Yield every use of a word, in the course's order, except in another glossary word or an ordinary phrase."""
    forms = _pattern(_forms(entry))
    others = [form for other in learned if other is not entry for form in _forms(other) if forms.search(form)]
    hidden = _pattern([*others, *entry.ordinary]) if others or entry.ordinary else None
    for notebook in sorted(texts):
        for cell, text in enumerate(texts[notebook]):
            plain = hidden.sub(_blank, text) if hidden else text
            bold = [match.span(1) for match in _BOLD.finditer(plain)]
            for match in forms.finditer(plain):
                is_bold = any(
                    plain[start:end].strip(" `") == match[0] for start, end in bold
                    if start <= match.start() < end
                )  # fmt: skip
                yield Use(notebook, cell, is_bold, _sentence(text, match), _beside(text, match))


def _forms(entry: Entry) -> list[str]:
    return [entry.word, f"{entry.word}s", *entry.forms]


def _pattern(forms: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for the forms as whole words, in upper or lower case and with any blanks; longer forms win."""
    escaped = (r"\s+".join(map(re.escape, form.split())) for form in sorted(forms, key=len, reverse=True))
    inside = "|".join(escaped)
    # A phrase may begin with a star: *lag* in italics is not **lag**, which is bold.
    return re.compile(rf"(?<![\w-])(?:(?<!\*)(?=\*)|(?!\*))(?:{inside})(?![\w-])(?:(?<!\*)|(?!\*))", re.IGNORECASE)


def _readable(text: str, *, is_first: bool) -> str:
    """Return the text of a cell with blanks for all that is no sentence; the other characters keep their positions."""
    if NAMES in text:
        return ""
    text = re.sub(r"```.*?```", _blank, text, flags=re.DOTALL)
    text = re.sub(r"^#+ .*$", _blank, text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)|(?<=\])\([^)]*\)", _blank, text)
    text = re.sub(r"<[^>]*>|https?://\S+", _blank, text)
    # A name such as read_committed is a word of the glossary and code at once.
    text = _CODE.sub(lambda found: found[0] if re.fullmatch(r"[a-z]+_[a-z]+", found[1]) else _blank(found), text)
    return re.sub(r"^- .*(?:\n  .*)*", _blank, text, flags=re.MULTILINE) if is_first else text


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"\S", " ", found[0])


def _sentence(text: str, found: re.Match[str]) -> str:
    """Return the sentence around a match."""
    start = max((end.end() for end in _END.finditer(text, 0, found.start())), default=0)
    after = _END.search(text, found.end())
    return " ".join(text[start : after.start() if after else len(text)].split())


def _beside(text: str, found: re.Match[str]) -> int:
    """Return the number of words of the paragraph around a match, without the match."""
    start = text.rfind("\n\n", 0, found.start()) + 1
    end = text.find("\n\n", found.end())
    inside = text[start : end if end >= 0 else len(text)]
    return len(re.findall(r"\w+", inside)) - len(found[0].split())


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= 80 else f"{sentence[:77]}..."


def _place(use: Use) -> str:
    return f"{use.notebook}, cell {use.cell}"
