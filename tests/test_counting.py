"""What a word is, and what the jobs should emit, against other ways of saying the same."""

import re
import sys
import unicodedata
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.core.errors import InvalidInput
from labkit.core.records import Observation, PlannedBatch, Record
from labkit.host.logs import MAX_LINE
from labkit.runs.counting import WORD, Ones, RunningCounts, Totals, words


def belongs(char: str) -> bool:
    return unicodedata.category(char)[0] in "LN" or char == "'"


def test_a_word_is_made_of_letters_numbers_and_apostrophes_and_of_nothing_else():
    chars = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF)
    assert [hex(ord(char)) for char in chars if bool(WORD.fullmatch(char)) != belongs(char)] == []


@given(st.text(max_size=40))
def test_words_are_maximal_runs(line: str):
    runs = ["".join(run).lower() for is_word, run in groupby(line, belongs) if is_word]
    assert words(line) == runs


def text(folder: Path, content: str) -> Path:
    (folder / "text").write_text(content, encoding="utf-8")
    return folder / "text"


def test_totals_are_the_last_count_of_every_word_of_a_batch(tmp_path: Path):
    count = Totals(text(tmp_path, "b a\na\n\nA c\n"), 2)
    assert count.check() == 4
    assert list(count.expected()) == [Record(0, "a", 2), Record(1, "b", 1), Record(2, "a", 3), Record(3, "c", 1)]
    assert count.planned_batches([PlannedBatch(0, 0, 2), PlannedBatch(1, 2, 4)]) == [
        PlannedBatch(0, 0, 2),
        PlannedBatch(1, 2, 4),
    ]


def test_rows_are_known_by_line_and_word(tmp_path: Path):
    count = Totals(text(tmp_path, "b a\na\n"), 1)
    rows = [Observation(1, "a", 2, 1, 1), Observation(0, "b", 1, 0, 1), Observation(1, "b", 7, 1, 1)]
    assert [row.offset for row in count.numbered(rows)] == [2, 1, 4]


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=12), st.integers(1, 5))
def test_the_last_total_of_a_word_is_its_count(tmp_path_factory: pytest.TempPathFactory, lines: list, batch: int):
    path = text(tmp_path_factory.mktemp("text"), "".join(" ".join(line) + "\n" for line in lines))
    rows = list(Totals(path, batch).expected())
    assert {row.key: row.value for row in rows} == Counter(word for line in lines for word in line)
    assert [row.offset for row in rows] == list(range(len(rows)))


def test_running_and_each(tmp_path: Path):
    (tmp_path / "log").write_text('{"word": "a"}\n{"word": "b"}\n{"word": "a"}\n')
    assert [tuple(row) for row in RunningCounts(tmp_path / "log").expected()] == [(0, "a", 1), (1, "b", 1), (2, "a", 2)]
    assert [tuple(row) for row in Ones(tmp_path / "log").expected()] == [(0, "a", 1), (1, "b", 1), (2, "a", 1)]


BAD = {
    b"": "the input is empty; name a text",
    b"!!\n\n--\n": "contains no word",
    b"fine\n\xff\n": "line 2: not UTF-8 (byte 1 of the line); save the text as UTF-8",
    b"fine\n\0\n": "line 2: binary data, not text",
    b"fine\n" + b"a" * (MAX_LINE + 1) + b"\n": "line 2: this line is longer than 16 MB; split it",
}


@pytest.mark.parametrize("content", BAD, ids=lambda content: repr(content[:9]))
def test_a_bad_text_is_refused_by_its_line(content: bytes, tmp_path: Path):
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(InvalidInput, match=re.escape(BAD[content])):
        Totals(tmp_path / "text", 10).check()
