"""Crash points that leave equal files: which they are, and what a run at one of them proves about the others."""

import struct
import uuid
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from labkit.crashtest.blackbox.alike import alike
from labkit.crashtest.blackbox.campaign import Campaign
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.points import EXIT, Point, choose, one_of_each, points
from labkit.crashtest.blackbox.settings import pipeline_settings
from labkit.crashtest.blackbox.states import RunFiles, State
from labkit.crashtest.ledger import silent
from labkit.crashtest.verdict import Group, Result
from labkit.host.syscalls.calls import Call, CallKind

Files = dict[str, State]
"""The files before each effect, by its name."""


def write(path: str, nth: int, kind: CallKind = CallKind.WRITE, size: int = 1) -> Effect:
    return Effect(Call(1, 9, 9, kind, str(kind), path, "", size, 0.0, 0), Path(path).name, nth)


def start(
    folder: Path, *steps: tuple[str, str], kind: CallKind = CallKind.WRITE, by_meaning: bool = False
) -> tuple[list[Effect], Files]:
    """Return the effects of a start that writes these (name, text), one after the other, and the files before each."""
    files, namer = RunFiles([folder], by_meaning=by_meaning), Namer([folder])
    effects, states = [], dict[str, State]()
    for number, (name, text) in enumerate([*steps, ("", "")]):
        path = folder / name
        effects.append(write(str(path), number, kind) if name else write("", number, CallKind.EXIT))
        states[effects[-1].name] = files.look(effects[-1], namer)
        if name and kind is CallKind.WRITE:
            path.write_text(text, encoding="latin-1")
    return effects, states


def groups(effects: list[Effect], states: Files, immaterial: frozenset[str] = frozenset()) -> list[int]:
    """Return a number for each point but the last; points that leave equal files have equal numbers."""
    found = alike(points(effects), effects, states, immaterial)
    assert EXIT not in found
    seen = list(dict.fromkeys(found.values()))
    return [seen.index(value) for value in found.values()]


def test_points_with_equal_files_are_alike(tmp_path: Path) -> None:
    assert groups(*start(tmp_path, ("a", "1"), ("a", "2"), ("a", "2"), ("b", "1"), ("b", "2"))) == [0, 1, 2, 2, 3]


def test_files_that_were_written_in_another_order_are_not_equal(tmp_path: Path) -> None:
    steps = [("a", "1"), ("b", "1"), ("a", "1"), ("b", "1"), ("b", "1")]
    assert groups(*start(tmp_path, *steps)) == [0, 1, 2, 3, 2]


@pytest.mark.parametrize("kind", [CallKind.SEND, CallKind.ATTRIBUTES])
def test_what_files_do_not_show_sets_points_apart(kind: CallKind, tmp_path: Path) -> None:
    """A message changes what a server keeps. A time that is set to a fraction of a second is not compared."""
    effects, states = start(tmp_path, ("a", "1"), ("b", "1"), kind=kind)
    assert groups(effects, states) == [0, 1]


@pytest.mark.parametrize(
    ("other", "kind", "known"), [(1, CallKind.WRITE, [0, 1]), (2, CallKind.WRITE, [0, 1]), (2, CallKind.SYNC, [0, 2])]
)
def test_files_that_another_thread_may_be_about_to_change_are_not_known(
    other: int, kind: CallKind, known: list[int], tmp_path: Path
) -> None:
    """The files before the third call are as before the second one, perhaps since that had not happened yet."""
    effects, states = start(tmp_path, ("a", "1"), ("a", "1"), ("a", "1"))
    assert groups(effects, states) == [0, 1, 1]
    effects[other] = replace(effects[other], call=replace(effects[other].call, pid=2))
    effects[1] = replace(effects[1], call=replace(effects[1].call, kind=kind))
    found = alike([Point(each.name, 1) for each in effects[:3]], effects, states)
    assert [*found] == [effects[number].name for number in known]


def test_inputs_that_are_removed_one_after_the_other_are_no_equal_leftovers(tmp_path: Path) -> None:
    """Their names are ids, which a search for new states masks."""
    files, namer = RunFiles([tmp_path]), Namer([tmp_path])
    effects, states = [], dict[str, State]()
    for number in range(4):
        (tmp_path / f"{uuid.UUID(int=number)}.json").write_text(f"row {number}")
    for number in range(4):
        path = tmp_path / f"{uuid.UUID(int=number)}.json"
        effects.append(write(str(path), number, CallKind.UNLINK))
        states[effects[-1].name] = files.look(effects[-1], namer)
        path.unlink()
    assert groups(effects, states) == [0, 1, 2, 3]


def test_files_that_make_no_difference_are_not_compared(tmp_path: Path) -> None:
    effects, states = start(tmp_path, ("a", "1"), ("draft", "1"), ("draft", "12"), ("b", "1"))
    assert groups(effects, states) == [0, 1, 2, 3]
    assert groups(effects, states, frozenset({"draft"})) == [0, 1, 1, 1]


@pytest.mark.parametrize(("by_meaning", "numbers"), [(False, [0, 1, 2, 3, 4]), (True, [0, 1, 1, 1, 2])])
def test_logs_of_sqlite_that_restore_the_same_are_equal_only_where_asked(
    by_meaning: bool, numbers: list[int], tmp_path: Path
) -> None:
    """The header and two records of a journal that is not synced, and then one that is."""
    database, header = tmp_path / "rows.db", bytes(12) + (7).to_bytes(4, "big") + struct.pack(">3I", 1, 512, 1024)
    database.write_bytes(b"SQLite format 3\0".ljust(1024, b"\0"))
    texts = [header.ljust(512, b"\0") + bytes(1032) * number for number in (0, 1, 2)]
    texts.append(bytes.fromhex("d9d505f920a163d700000002") + texts[2][12:])
    journal = [("rows.db-journal", text.decode("latin-1")) for text in texts]
    assert groups(*start(tmp_path, *journal, ("rows.db", ""), by_meaning=by_meaning)) == numbers


@pytest.mark.parametrize(("text", "is_known"), [("same", True), ("other", False)])
def test_a_cut_write_is_like_the_whole_one_only_if_that_changes_nothing(
    text: str, is_known: bool, tmp_path: Path
) -> None:
    effects, states = start(tmp_path, ("a", "same"), ("a", text))
    whole = points(effects)[1]
    cut = Point(f"within {whole.name}", 9, cut=2)
    found = alike([whole, cut], effects, states)
    assert whole.name in found
    assert (cut.name in found) is is_known
    assert found.get(cut.name, found[whole.name]) == found[whole.name]


def test_one_point_of_those_that_are_alike_is_chosen() -> None:
    effects = [write("/f/a", number) for number in range(1, 6)]
    named = {each.name: "equal" for each in effects[1:4]}
    assert len(choose(effects, [], 9)) == 6
    chosen = choose(effects, [], 9, alike=named)
    assert len(chosen) == 4
    assert len({each.name for each in chosen} & named.keys()) == 1
    assert one_of_each(points(effects), named)[1].name == effects[1].name


def campaign(*results: Result) -> Campaign:
    """Return a test with four points, of which `b`, `c` and `d` leave equal files."""
    running = Campaign(pipeline_settings("true", read_command="cat"), SimpleNamespace(), silent)
    running.points = {name: Point(name, number) for number, name in enumerate("abcd", 1)}
    running.points_total = 4
    running.alike = {"a": 1, "b": 2, "c": 2, "d": 2}
    running.ledger.results = list(results)
    return running


def test_a_point_needs_no_run_if_one_with_equal_files_proved_something() -> None:
    running = campaign(Result("c", "", Group.CRASH))
    assert [each.name for each in running._points_left()] == ["a"]
    assert running._like_others() == 2


@pytest.mark.parametrize(
    "result",
    [Result("c", "", Group.CRASH, unknown="never reached"), Result("c", "", Group.PAIR), Result("c", "", Group.FAULT)],
    ids=["nothing proved", "another kind of run", "a fault"],
)
def test_a_run_that_proves_nothing_about_its_point_serves_no_other(result: Result) -> None:
    running = campaign(result)
    assert running._like_others() == 0
    assert [each.name for each in running._points_left()][:2] == ["a", "b"]
