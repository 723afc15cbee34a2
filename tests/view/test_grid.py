"""The grid: every square says what it was given, in text and in HTML without a script."""

import re

from labkit.view.grid import Grid, Square

ONCE = Square("exactly-once", "Simulated: 7 states.", "No schedule breaks a claim.", "lab.explore('a')")
MORE = Square(
    "at-least-once",
    "Simulated: 9 states.",
    "a row < twice",
    "lab.explore('b')",
    meanwhile=["a value jumps back"],
    real="Real Spark too.",
    steps=["It starts.", "It dies & starts again."],
)
GRID = Grid(
    {
        ("log", "append", "kept"): MORE,
        ("log", "append", "lost"): ONCE,
        ("log", "wal", "kept"): ONCE,
        ("log", "wal", "lost"): ONCE,
    }
)


def test_the_text_is_a_table_that_marks_what_was_real():
    assert str(GRID).splitlines() == [
        "          kept             lost",
        "log",
        "  append  at-least-once *  exactly-once",
        "  wal     exactly-once     exactly-once",
        "* also on real Spark",
    ]
    assert "*" not in str(Grid({("log", "append", "kept"): ONCE}))


def test_a_square_opens_without_a_script_and_says_everything():
    html = GRID.html()
    assert "<script" not in html
    first = re.search(r"<details.*?</details>", html, re.DOTALL)[0]
    assert "a row &lt; twice" in first
    assert "<li>It dies &amp; starts again.</li>" in first
    for said in ("a value jumps back", "simulated and real", "Real Spark too.", "Simulated: 9 states.", "\u00d72"):
        assert said in first
    assert html.count("<details") == 4


def test_the_same_grid_is_the_same_text():
    assert GRID.html() == Grid(GRID.squares).html()
