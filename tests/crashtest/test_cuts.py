"""A SIGKILL may end a write between two pages: which writes, after how many bytes, and what the file then holds."""

import sys
from pathlib import Path

import pytest
from command import labkit

from labkit.core.errors import JobFailed
from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.execution import write_part
from labkit.crashtest.blackbox.points import PAGE, Point, Recoveries, borders, choose, cuts, effect_of, points
from labkit.host.syscalls.calls import Call, CallKind


def call(kind: CallKind, path: str = "/f", size: int = 0, offset: int = -1, content: bytes | None = None) -> Call:
    return Call(1, 9, 9, kind, str(kind), path, "", size, 0.0, offset, content)


def effect(
    name: str, kind: CallKind = CallKind.WRITE, size: int = 10, offset: int = 0, content: bytes | None = None
) -> Effect:
    return Effect(call(kind, f"/{name}", size, offset, content), name, 1)


@pytest.mark.parametrize(
    ("offset", "size", "parts"),
    [
        (0, PAGE, []),
        (0, PAGE + 1, [PAGE]),
        (PAGE - 1, 2, [1]),
        (PAGE, PAGE, []),
        (10, 3 * PAGE, [PAGE - 10, 2 * PAGE - 10, 3 * PAGE - 10]),
        (0, 10 * PAGE, [PAGE, 5 * PAGE, 9 * PAGE]),
        (-1, 10 * PAGE, []),
        (0, 0, []),
    ],
)
def test_a_write_ends_at_the_first_a_middle_and_the_last_page(offset: int, size: int, parts: list[int]) -> None:
    write = call(CallKind.WRITE, size=size, offset=offset)
    found = cuts(write)
    assert sorted(found.values()) == parts
    assert set(parts) <= set(borders(write))


@pytest.mark.parametrize(
    ("offset", "content", "parts"),
    [
        (0, b"a\nbb\ncccc\n", []),  # one page, whatever rows come
        (9, b"a\nbb\ncccc\n", [5, 7]),
        (512, (b"a" * 63 + b"\n") * 8, []),  # an aligned block
        (500, (b"a" * 63 + b"\n") * 8, [256, 480]),
        (512, (b"a" * 31 + b"\n") * 32, [512, 1008]),  # its size is no divisor of its offset
        (PAGE, (b"a" * 63 + b"\n") * 64, [2048, 4064]),  # what a buffer of 4096 bytes writes
        (9, b"a\nbb", [2, 3]),
        (9, b"a row\n", []),
        (9, b"a\n\0b\n", []),  # no text
        (9, b"a\n\xff\n", []),
        (0, b"a" * (PAGE - 1) + b"\n" + b"b" * 9, [PAGE, PAGE + 4]),  # a row ends where a page does
        (0, (b"a" * 99 + b"\n") * 99, [PAGE, 5000, 2 * PAGE, 9850]),
    ],
)
def test_a_text_also_ends_after_a_row_and_within_the_last_one(offset: int, content: bytes, parts: list[int]) -> None:
    found = cuts(call(CallKind.WRITE, size=len(content), offset=offset, content=content))
    assert sorted(found.values()) == sorted(parts)
    assert len(found) <= 5


def test_nothing_but_a_write_is_cut() -> None:
    assert cuts(call(CallKind.TRUNCATE, size=10 * PAGE, offset=0)) == {}
    clone = Call(1, 9, 9, CallKind.WRITE, "ioctl", "/f", "", 10 * PAGE, 0.0, 0)
    assert cuts(clone) == {}


def test_a_point_lies_within_a_write_that_crosses_a_page() -> None:
    effects = [effect("a", size=5000), effect("b"), effect("a", CallKind.RENAME)]
    assert [each.name for each in points(effects)] == ["write a #1", "write b #1", "rename a #1", "exit"]
    cut = points(effects, within=True)
    assert [each.name for each in cut[:3]] == ["write a #1", "within write a #1", "write b #1"]
    within = cut[1]
    assert (within.effect, within.cut, within.after) == ("write a #1", PAGE, "")
    assert str(within) == "within write a #1, after 4096 of its bytes"
    assert [each.number for each in cut] == [1, 2, 3, 4, 5]
    many = points([effect("a", size=10 * PAGE)], within=True)
    assert [each.name for each in many[1:4]] == [
        "within write a #1",
        "within write a #1, first page",
        "within write a #1, last page",
    ]
    assert {effect_of(each.name) for each in many} == {"write a #1", "exit"}
    plan = choose(effects, ["rename a #1"], 60)
    assert len(plan) == 5
    assert within not in choose(effects, ["rename a #1"], 3)


def test_a_short_test_also_cuts_a_write_and_best_in_the_last_row() -> None:
    """A program that appends to a torn line loses a row; kills between two calls never tear one."""
    rows = b"a,1\nb,2\n"
    torn = "within write out #1, in the last row"
    effects = [
        *(effect(name, CallKind.RENAME) for name in "cdef"),
        effect("log", offset=4, size=len(rows), content=rows),
        effect("pages", size=3 * PAGE, offset=1),
        effect("out", offset=4, size=len(rows), content=rows),
        effect("a", CallKind.RENAME),
    ]
    plain = choose(effects, (), 3)
    assert not any(each.cut for each in plain)
    cut = choose(effects, (), 3, {"log"}, with_cut=True)
    assert [each.name for each in cut if each not in plain] == [torn]
    assert cut == sorted(cut, key=lambda each: each.number)
    # None is added if a write is cut anyway, or if only an unimportant file is written.
    assert len([each for each in choose(effects, (), 60, with_cut=True) if each.name == torn]) == 1
    assert choose(effects[:5], (), 3, {"log"}, with_cut=True) == choose(effects[:5], (), 3, {"log"})
    journal = [*effects[:5], effect("db-journal", size=3 * PAGE, offset=1), effect("db")]
    assert choose(journal, (), 3, {"log"}, with_cut=True) == choose(journal, (), 3, {"log"})
    # The same name beside no database is that of a file of the program's own.
    own = [each.name for each in choose(journal[:-1], (), 3, {"log"}, with_cut=True) if each.cut]
    assert own == ["within write db-journal #1, last page"]
    # So is a text beside a file of that name.
    text = [*effects[:4], effect("db-wal", offset=4, size=len(rows), content=rows), effect("db")]
    [cut_of_text] = [each.name for each in choose(text, (), 3, with_cut=True) if each.cut]
    assert cut_of_text == "within write db-wal #1, in the last row"
    # A cut of SQLite's journal does not take the place of another one.
    many = [effect(f"out-{number}", offset=4, size=len(rows), content=rows) for number in (1, 2)]
    both = [effect("db-journal", size=3 * PAGE, offset=1), effect("db"), *many]
    few, with_cut = ([each.name for each in choose(both, (), 5, with_cut=more) if each.cut] for more in (False, True))
    assert few == ["within write db-journal #1, last page"]
    assert with_cut == [*few, "within write out-2 #1, in the last row"]
    assert [each.name for each in choose(effects[:6], (), 3, {"log"}, with_cut=True) if each.cut] == [
        "within write pages #1, last page"
    ]


APPENDS = """
import os
for number in range(20):
    with open(f"part-{chr(97 + number)}", "w") as part:
        part.write("1")
for number in range(2):
    with open("out", "a") as out:
        out.write("1\\n2\\n")
"""


def test_a_quick_test_of_a_pipeline_cuts_a_write(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(APPENDS)
    words = ["--command", f"{sys.executable} -B job.py", "--read-command", "cat out 2>/dev/null || true"]
    words += ["--reset", "rm -f out part-*", "--watch", ".", "--dry", "--quick"]
    code, out, _ = labkit("crashtest", *words, cwd=tmp_path)
    assert code == 0
    assert "within write out #2, in the last row" in out


def test_the_first_part_of_the_bytes_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * PAGE)
    content = b"a" * (PAGE + 7)
    write_part(call(CallKind.WRITE, str(path), len(content), 10, content))
    assert path.read_bytes() == b"x" * 10 + b"a" * (PAGE - 10)


def test_a_write_that_cannot_be_cut_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match="could not imitate a kill within a write"):
        write_part(call(CallKind.WRITE, "/f", 10, 0, b"a" * 10))
    with pytest.raises(JobFailed, match="could not imitate a kill within a write"):
        write_part(call(CallKind.WRITE, "/f", 2 * PAGE, 0, None))
    with pytest.raises(JobFailed, match="had to write its first part and could not"):
        write_part(call(CallKind.WRITE, str(tmp_path / "gone"), 2 * PAGE, 0, b"a" * 2 * PAGE))


def test_a_crash_loop_is_before_what_shows_rows_first() -> None:
    effects = [effect("t", CallKind.RENAME), effect("p", CallKind.RENAME), effect("end", CallKind.EXIT)]
    recoveries = {(at,): effects for at in points(effects)}
    looped = Recoveries(recoveries, effects, frozenset({"rename p"})).loops(2)
    assert [point.name for point in looped] == ["rename p #1", "rename t #1"]
    assert Point("exit", 3) not in looped
