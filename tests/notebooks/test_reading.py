"""Minutes and sentences of a notebook are counted as a reader would, and what is beyond the limits is refused."""

import shutil
from pathlib import Path

import build_notebooks
import pytest
import reading
from nbformat import v4
from reading import LONGEST, MOST_MINUTES, WORDS_A_MINUTE, minutes, read, sentences

TINY = Path(__file__).with_name("00_tiny.py")


def text(source, *tags):
    return v4.new_markdown_cell(source, metadata={"tags": list(tags)})


def code(source, *tags):
    return v4.new_code_cell(source, metadata={"tags": list(tags)})


def long(count):
    return "word " * (count - 1) + "end."


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("One is here. Two is there! Is three? Yes.", ["One is here.", "Two is there!", "Is three?", "Yes."]),
        ("It runs\nover lines.\n\nNo stop here\n\nAnother", ["It runs over lines.", "No stop here", "Another"]),
        ("Three things:\n\n- one\n- two\n  of them\n1. three", ["Three things:", "one", "two of them", "three"]),
        ("# A heading. It is none.\n\nText.", ["Text."]),
        ("| a | b |\n|---|---|\n| one. two. | three |\n\nText.", ["Text."]),
        ("```\nx = 1. Y = 2\n```\nText.", ["Text."]),
        ("<details><summary>Which one. Is right?</summary>The first. It is.</details>", ["The first.", "It is."]),
        ("See [it](a.md) of Spark 4.2. `a/0` is (there.) *so* ... it is.", ["See it of Spark 4.2.", "Code is (there.)", "so ... it is."]),  # noqa: E501  # a text and its sentences side by side
        ('> **Wrong.** "*It is so.*" It is not.', ["Wrong.", '"It is so."', "It is not."]),
        ("Choose a mode (`a`: `1`,\n`2`) for it (see `b`).", ["Choose a mode for it (see Code)."]),
        ("*Sources*: this\none. That one.\n\nText.", ["Text."]),
        ("{head}\n\n![a picture. Of it](x.svg)", []),
    ],
)  # fmt: skip
def test_sentences_are_what_a_reader_reads(markdown, expected):
    assert sentences(markdown) == expected


def test_minutes_are_words_questions_pictures_crashes_and_exercises():
    words = text("word " * WORDS_A_MINUTE * 3)
    assert minutes([words]) == (3, 0)
    for call, seconds in (
        ('lab.ask("00-rows")', 35),
        ('lab.show("x")', 90),
        ("outcome = lab.crash(x)\nsecond = lab.crash(y)", 50),
        ("%%time\nlab.crash(x)", 25),
        ("lab.crash_test(x)", 100),
        ('lab.crash_test(lab.save_sink(f), only=["a", "b"])', 15),
        ("lab.answer(1)\nshow(lab)\nother.show(1)", 0),
    ):
        assert minutes([words, *[code(call)] * 12]) == (3 + -(-seconds * 12 // 60), 0)
    asked = [
        text("word " * 1000, "task"),
        code("# exercise 05-recovery\nlab.show(1)", "exercise"),
        code("# exercise 05-recovery\nlab.show(1)", "solution"),
        code("lab.show(1)", "check"),
        code("lab.show(1)", "checked"),
    ]
    assert minutes([words, *asked]) == (3, 12)


def test_a_long_sentence_and_a_long_notebook_are_named():
    fine = read([text(long(LONGEST)), text("Word. " * WORDS_A_MINUTE)])
    assert fine.complaints() == []
    assert (fine.longest, fine.minutes) == (LONGEST, 2)
    [said] = read([text(long(LONGEST + 1))]).complaints()
    assert said.startswith(f"a sentence of {LONGEST + 1} words, and {LONGEST} are")
    [said] = read([text("word.\n\n" * WORDS_A_MINUTE * MOST_MINUTES + "more")]).complaints()
    assert said.startswith(f"about {MOST_MINUTES + 1} minutes without exercises, and")


def test_plain_words_read_more_easily():
    easy = read([text("The cat sat on the mat. It was fat.")])
    hard = read([text("Heterogeneous consistency guarantees necessitate coordination.")])
    assert easy.flesch > 100 > 30 > hard.flesch
    for word, syllables in (("made", 1), ("offset", 2), ("table", 2), ("needed", 2), ("places", 2), ("stores", 1)):
        assert reading._syllables(word) == syllables, word


def test_a_notebook_beyond_the_limits_is_refused(tmp_path, capsys):
    source = tmp_path / "notebooks" / "src" / TINY.name
    source.parent.mkdir(parents=True)
    shutil.copy(TINY, source)
    check = ["--root", str(tmp_path), "--check"]
    short = source.read_text()
    for longest, ended in ((LONGEST, 0), (LONGEST + 1, 1)):
        source.write_text(f"{short}\n# %% [markdown]\n# {long(longest)}\n")
        build_notebooks.main(["--root", str(tmp_path)])
        assert build_notebooks.main(check) == ended
        said = capsys.readouterr()
        printed = said.out.splitlines()
        assert printed[-3].split()[:3] == ["notebook", "minutes", "exercises"]
        assert printed[-2].split()[0] == "00_tiny"
        assert printed[-2].split()[-2] == str(longest)
    assert f"00_tiny.py: a sentence of {LONGEST + 1} words" in said.err
