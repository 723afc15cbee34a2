"""The estimate of minutes counts words, questions, pictures and crashes, and a notebook that is too long is refused."""

import shutil
from pathlib import Path

import build_notebooks
from nbformat import v4
from reading import CODE_LINE, MOST_MINUTES, OUTPUT_LINE, WORDS_A_MINUTE, minutes, read

TINY = Path(__file__).with_name("00_tiny.py")


def text(source, *tags):
    return v4.new_markdown_cell(source, metadata={"tags": list(tags)})


def code(source, *tags):
    return v4.new_code_cell(source, metadata={"tags": list(tags)})


def test_minutes_count_lines_that_a_cell_prints_unless_they_belong_to_an_exercise():
    shown, check = code("1"), code("lab.check('x')", "check")
    cells = [*[shown] * 30, check]
    silent, _ = minutes(cells)
    spoken, _ = minutes(cells, dict.fromkeys(range(31), "one\n\ntwo\n"))
    assert (silent, spoken) == (30 * CODE_LINE // 60, (30 * CODE_LINE + 60 * OUTPUT_LINE) // 60)


def test_minutes_are_words_questions_pictures_crashes_and_exercises():
    words = text("word " * WORDS_A_MINUTE * 3)
    assert minutes([words]) == (3, 0)
    for call, seconds in (
        ('lab.ask("00-rows")', 35 + CODE_LINE),
        ('lab.show("x")', 90 + CODE_LINE),
        ("outcome = lab.crash(x)\n\nsecond = lab.crash(y)", 50 + 2 * CODE_LINE),
        ("%%time\nlab.crash(x)", 25 + 2 * CODE_LINE),
        ("lab.crash_test(x)", 100 + CODE_LINE),
        ('lab.crash_test(lab.save_sink(f), only=["a", "b"])', 15 + CODE_LINE),
        ("lab.answer(1)\nshow(lab)\nother.show(1)", 3 * CODE_LINE),
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


def test_a_long_notebook_is_named():
    assert read([text("word " * WORDS_A_MINUTE * MOST_MINUTES)]).complaints() == []
    [complaint] = read([text("word " * WORDS_A_MINUTE * MOST_MINUTES + "more")]).complaints()
    assert f"{MOST_MINUTES + 1} minutes" in complaint


def test_a_notebook_beyond_the_limit_is_refused(tmp_path, capsys):
    source = tmp_path / "notebooks" / "src" / TINY.name
    source.parent.mkdir(parents=True)
    shutil.copy(TINY, source)
    check = ["--root", str(tmp_path), "--check"]
    short = source.read_text()
    for words, ended in ((10, 0), (WORDS_A_MINUTE * (MOST_MINUTES + 1), 1)):
        source.write_text(f"{short}\n# %% [markdown]\n# {'word ' * words}\n")
        build_notebooks.main(["--root", str(tmp_path)])
        assert build_notebooks.main(check) == ended
        shown = capsys.readouterr()
        printed = shown.out.splitlines()
        assert printed[-3].split() == ["notebook", "minutes", "exercises", "words"]
        assert printed[-2].split()[0] == "00_tiny"
    assert "00_tiny.py: about " in shown.err
