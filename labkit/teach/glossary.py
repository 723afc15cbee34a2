"""The glossary: every term of the course and of the project, and the card that explains one.

`glossary.toml` contains the terms; docs/glossary.md is generated from it.
"""

import difflib
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from labkit.core.errors import InvalidInput
from labkit.core.words import columns, markdown_table, name_in
from labkit.view.card import DIM, Card, Cell, para, table

FILE = Path(__file__).with_suffix(".toml")
OTHERS = {"flink": "Flink", "spark": "Spark", "kafka": "Kafka", "postgresql": "PostgreSQL", "literature": "elsewhere"}
"""The other systems whose words the glossary gives: for each, the field of `Entry` and the heading of the column."""
WIDTH = 160
"""The line length, in characters, of the list of all words."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One word of the glossary, with its meaning, and the words of other systems for the same thing.

    The comments in `glossary.toml` explain each field.
    """

    word: str
    section: str
    meaning: str
    flink: str = ""
    spark: str = ""
    kafka: str = ""
    postgresql: str = ""
    literature: str = ""
    notebook: str = ""
    own: bool = False
    see: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    ordinary: dict[str, str] = {}

    def elsewhere(self) -> dict[str, str]:
        """Return the words of other systems for the same thing, as a dict from the system's name to its word."""
        named = {name: getattr(self, field) for field, name in OTHERS.items()}
        return {name: term for name, term in named.items() if term not in {"", "-"}}


def read(text: str) -> tuple[tuple[str, ...], dict[str, Entry]]:
    """Return the names of the sections in `glossary.toml`, and a dict from each word to its entry.

    `text` is the file's content; the results keep its order. Raises `msgspec.ValidationError` for an invalid entry.
    """
    sections: dict[str, dict[str, Any]] = tomllib.loads(text)
    return tuple(sections), {
        word: msgspec.convert({"word": word, "section": section, **fields}, Entry)
        for section, words in sections.items()
        for word, fields in words.items()
    }


@cache
def entries() -> dict[str, Entry]:
    """Return the whole glossary as a dict from word to entry."""
    return read(FILE.read_text(encoding="utf-8"))[1]


def word(name: str | None = None) -> Card:
    """Return a card that explains a word, as in `lab.word("offset")`; without a name, a card with the course's words.

    Raises `InvalidInput` for a word that the glossary does not have, and suggests the most similar ones.
    """
    words = entries()
    if name is None:
        return _all([entry for entry in words.values() if entry.notebook])
    wanted = name_in(name, 'lab.word("offset")').strip().lower()
    for entry in words.values():
        if wanted in {form.lower() for form in (entry.word, f"{entry.word}s", *entry.forms)}:
            return _card(entry)
    close = difflib.get_close_matches(wanted[:40], list(words), n=3, cutoff=0.5)
    remedy = f"did you mean {' or '.join(map(repr, close))}?" if close else "lab.word() lists the course's words."
    raise InvalidInput(f"the glossary does not contain {name[:40]!r}; {remedy}")


def _card(entry: Entry) -> Card:
    others = entry.elsewhere()
    origin = f"It is explained in notebook {entry.notebook}." if entry.notebook else ""
    see = f"See also: {', '.join(entry.see)}." if entry.see else ""
    systems = columns(list(others.items())).splitlines() if others else []
    return Card(
        entry.word,
        para(_unmarked(entry.meaning)),
        table(("", ""), [(system, _unmarked(term)) for system, term in others.items()]),
        para(see) if see else "",
        para(origin, kind="lkc-under") if origin else "",
        plain=[f"{entry.word}: {entry.meaning}", *systems, *filter(None, (see, origin))],
    )


def _all(entries: Sequence[Entry]) -> Card:
    inside = sorted(entries, key=lambda entry: entry.word.lower())
    rows = [(entry.word, _unmarked(entry.meaning), Cell(entry.notebook, DIM)) for entry in inside]
    words = ", ".join(entry.word for entry in inside)
    own = own_names()
    say = [
        (entry.word, _unmarked(", ".join(f"{term} ({name})" for name, term in entry.elsewhere().items())))
        for entry in own
    ]
    return Card(
        "",
        para(
            f"{len(own)} of them are the lab's own names. To people who have not taken the course, say the other ones:"
        ),
        table(("the lab's own", "others say"), say),
        table(("word", "meaning", "explained in"), rows),
        title=f"{len(rows)} words",
        plain=[
            f"{len(rows)} words:",
            *wrap(words, WIDTH, break_on_hyphens=False),
            *wrap(f"The lab's own names: {', '.join(entry.word for entry in own)}", WIDTH, break_on_hyphens=False),
        ],
    )


def own_names() -> list[Entry]:
    """Return the entries for terms that only labkit uses, in alphabetical order."""
    return sorted((entry for entry in entries().values() if entry.own), key=lambda entry: entry.word.lower())


def _unmarked(text: str) -> str:
    return text.replace("`", "").replace("*", "")


def page() -> str:
    """Return the Markdown text of docs/glossary.md, generated from `glossary.toml`."""
    sections, entries_by_word = read(FILE.read_text(encoding="utf-8"))
    tables = [_table([entry for entry in entries_by_word.values() if entry.section == section]) for section in sections]
    parts = [f"## {name}\n\n{rows}" for name, rows in zip(sections, tables, strict=True)]
    own = ", ".join(f"*{entry.word}*" for entry in own_names())
    head = f"{HEAD}\n\nThe lab invented these names; you find other names for the same things elsewhere: {own}."
    return "\n\n".join([head, *parts]) + "\n"


def _table(inside: Sequence[Entry]) -> str:
    names = {**OTHERS, "notebook": "explained in"}
    fields = [field for field in names if any(getattr(entry, field) for entry in inside)]
    rows = [
        ["word here", "meaning", *(names[field] for field in fields)],
        *([entry.word, entry.meaning, *(getattr(entry, field) or "-" for field in fields)] for entry in inside),
    ]
    return markdown_table(rows)


HEAD = """\
# Glossary: one word, one meaning

The left column holds the words that notebooks, code, pages and messages of this project use. The other columns give the
words of Flink, Spark Structured Streaming, Kafka and PostgreSQL for the same thing, or for the nearest thing that they
have; a dash means that the system has nothing of the kind. Class names are those of Flink 1.x and 2.x, Spark 4.x and
Kafka 4.x.

In a notebook, `lab.word("offset")` shows a row of this page. `make notebooks` writes the page from
`labkit/teach/glossary.toml`."""
