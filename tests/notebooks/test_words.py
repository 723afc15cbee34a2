"""The glossary is one file: its page, its cards, and the order in which the course explains its words."""

import re
import tomllib
from functools import cache

import build_notebooks
import msgspec
import pytest
from terms import complaints

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.teach import glossary
from labkit.teach.glossary import Entry, entries
from labkit.teach.shipped import STEM

ROOT = build_notebooks.Path(__file__).parents[2]
SOURCES = build_notebooks.sources(ROOT)
LEARNED = {word: entry for word, entry in entries().items() if entry.notebook}
WANTED = """
    stream, micro-batch, sink, batch, offset, checkpoint, driver, task, operator, shuffle, parallelism, transaction, commit,
    pre-commit, failpoint, schedule, state of a search, claim, epoch, upsert, last stable offset, read_committed,
    transactional id, broker, tick, handle, recovery, zombie, fencing, commit-then-log, log-then-commit, snapshot marker,
    transaction marker, batch marker, offset log, commit log, write-ahead log
"""  # noqa: E501
"""Words that notebooks once used before they explained them, or for several things at once."""


@cache
def texts() -> dict[str, list[str]]:
    """The text of every notebook."""
    found = {}
    for source in SOURCES:
        cells, _, _ = build_notebooks.read(source)
        found[source.stem] = [cell.source if cell.cell_type == "markdown" else "" for cell in cells]
    return found


@cache
def all_complaints() -> list[str]:
    return complaints(texts(), entries())


@pytest.mark.parametrize("name", [source.stem for source in SOURCES])
def test_the_words_of_the_course_come_in_order(name):
    mine = [each for each in all_complaints() if each.startswith((f"{name}:", f"{name},"))]
    assert "\n".join(mine) == ""


def test_the_page_is_made_from_the_file():
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert page == glossary.page()
    for word, entry in entries().items():
        assert page.count(f"\n| {word} | {entry.meaning} |") == 1
    assert "| gid, the name in `PREPARE TRANSACTION` |" in page


def test_every_entry_is_sound():
    text = glossary.FILE.read_text(encoding="utf-8")
    sections, known = glossary.read(text)
    assert len(known) == sum(map(len, tomllib.loads(text).values())), "no word is in two sections"
    assert {entry.section for entry in known.values()} == set(sections)
    assert set(re.split(r",\s+", WANTED.strip())) <= set(LEARNED)
    for word, entry in known.items():
        assert set(entry.see) <= set(entries()) - {word}, word
        assert 1 <= len(re.findall(r"\.(?:\)|$|\s)", entry.meaning)) <= 3, word
        assert "|" not in "".join(map(str, msgspec.structs.astuple(entry)))
        if entry.notebook:
            assert STEM.fullmatch(entry.notebook), word
            assert len(entry.meaning.split()) <= 35, word
            assert entry.elsewhere() or entry.section == "Simulators and exercises"
        assert all(reason for reason in entry.ordinary.values()), word
    assert sum(len(entry.ordinary) for entry in known.values()) <= 12, "a small list"
    own = {word for word, entry in known.items() if entry.own}
    assert len(own) <= 12, "whoever leaves the course must translate each of them"
    assert own <= set(LEARNED)
    forms = [form for entry in LEARNED.values() for form in (entry.word, *entry.forms)]
    assert len(set(forms)) == len(forms)


def test_a_card_says_the_meaning_and_others_names():
    card = lab.word("Offsets")
    bundle = card._repr_mimebundle_()
    assert bundle["text/plain"].splitlines() == [
        "offset: The position of a record in its log, counted from 0.",
        "Flink  position of a source split",
        "Spark  offset of a source",
        "Kafka  offset in a partition",
        "See also: log, offset log.",
        "It is explained in notebook 00_start.",
    ]
    for part in ("The position of a record", "position of a source split", "00_start"):
        assert part in bundle["text/html"]
    assert lab.word("jumped back").word == "jump back"
    for word in entries():
        bundle = lab.word(word)._repr_mimebundle_()
        assert bundle["text/plain"].startswith(f"{word}: ")
        assert len(bundle["text/html"].encode()) <= 50_000


def test_without_a_word_all_are_listed():
    bundle = lab.word()._repr_mimebundle_()
    assert bundle["text/plain"].startswith(f"{len(LEARNED)} words:\nacknowledgement, ")
    assert " ... " not in bundle["text/plain"]
    listed = " ".join(bundle["text/plain"].split())
    assert "The lab's own names: batch marker, claim, " in listed
    assert bundle["text/html"].count("fractured read (Bailis)") == 0
    assert "non-monotonic read (elsewhere)" in bundle["text/html"]
    for word, entry in LEARNED.items():
        assert word in listed
        assert f">{word}</th>" in bundle["text/html"]
        assert entry.notebook in bundle["text/html"]
    assert len(bundle["text/html"].encode()) <= 50_000


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("ofset", "did you mean 'offset' or "),
        ("chekpoint", "did you mean 'checkpoint'"),
        ("xyzzy", "lab.word() lists the course's words."),
        ("x" * 500, "the glossary does not contain '" + "x" * 40 + "'; lab.word() lists the course's words."),
    ],
)
def test_an_unknown_word_gets_the_nearest_ones_in_one_sentence(asked, told):
    with pytest.raises(InvalidInput) as refused:
        lab.word(asked)
    assert told in str(refused.value)


# ------------------------------------------------------------------ the order of words, on a course of two notebooks


def entry(word, notebook, **more):
    return Entry(word, "", f"What {word} is.", notebook=notebook, **more)


WORDS = {
    "lag": entry("lag", "01_a", forms=("lags", "lagging")),
    "lag log": entry("lag log", "02_b", ordinary={"log of the lag log": "a song", "*lag log*": "its name"}),
    "read_late": entry("read_late", "02_b"),
}
A = "How far a reader is behind its writer is called its **lag**, counted in records."
B = "A **lag log** is a file with a line for each lag that a reader has had so far."
C = "With **`read_late`** a reader waits for everybody; `read_late` has its price here."


def of(a, b=(B, C), words=WORDS):
    return complaints({"01_a": ["# Title", *a], "02_b": ["# Title", *b]}, words)


def test_words_in_order_are_not_complained_about():
    assert of([A, "It lags."]) == []
    assert complaints({"01_a": ["", A]}, WORDS) == [], "02_b is not read"


@pytest.mark.parametrize(
    "harmless",
    [
        "## What lag is",
        "`lag`",
        "```\nlag\n```",
        "[a page](lag.md)",
        "![a picture of lag](x.svg)",
        "lagoon, jet-lag and flag",
        "## What this is called in Flink\n\n| lag | lag log |",
        "the log of the lag log",
        "the *lag log* of somebody",
    ],
)
def test_what_is_no_use_of_a_word_may_stand_above_it(harmless):
    assert of([harmless, A]) == []


def test_the_aims_of_a_notebook_may_name_what_comes():
    first = "# Lag?\n\nYou will be able to\n\n- say what lag\n  is\n- do more"
    assert complaints({"01_a": [first, A]}, WORDS) == []
    [said] = complaints({"01_a": [first + "\n\nThe lag.", A]}, WORDS)
    assert "'lag' is used above its meaning in 01_a, cell 1 (The lag)" in said


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (["A lag.", A], (B, C), "01_a, cell 1: 'lag' is used above its meaning in 01_a, cell 2 (A lag)."),
        (["It was\nlagging. " + A], (B, C), "01_a, cell 1: 'lag' is used above its meaning"),
        (["Nothing."], ("Nothing.", C), "01_a: it is to explain 'lag', and has no **lag** with"),
        ([A, "**Lag** again."], (B, C), "01_a, cell 2: **lag** is bold again; it is explained in 01_a, cell 1."),
        ([A, "A lag  log."], (B, C), "01_a, cell 2: 'lag log' is used, and 02_b is to explain it"),
        ([A, "Set `read_late`."], (B, C), "'read_late' is used, and 02_b is to explain it"),
        (["This is **lag**."], (B, C), "01_a, cell 1: **lag** has no meaning beside it"),
        (["Nothing."], (A, B, C), "02_b, cell 1: **lag** is explained here, and glossary.toml says 01_a."),
    ],
)  # fmt: skip
def test_words_out_of_order_are_named_with_their_place(a, b, told):
    said = of(a, b)
    assert any(told in each for each in said), said
