"""Points are found in a log, none by hand; what is left out is counted; pairs come from recoveries."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from labkit.core.errors import InvalidInput
from labkit.crashtest.instrument.effects import Effect, Kind, Point, Side, check_id
from labkit.crashtest.points import (
    QUICK_POINTS,
    QUICK_REPAIRS,
    choose,
    deciding_points,
    large_points,
    last_point,
    pairs,
    points,
    read_log,
    retry_point,
    second_points,
    unfinished,
    zombie_point,
)


def call(batch: int, *kinds: Kind, where: str = "call", driver: int = 1) -> list[Effect]:
    """A call of the sink with these effects, the nth by line 10 + n."""
    begin = Effect(batch, where, 0, Kind.BEGIN, "", 0, 1, driver)
    effects = [Effect(batch, where, n, kind, "t", 10 + n, 1, driver) for n, kind in enumerate(kinds, start=1)]
    return [begin, *effects, Effect(batch, where, len(kinds) + 1, Kind.RETURN, "", 0, 1, driver)]


TRANSACTION = (Kind.STATEMENT, Kind.COMMIT)


def test_a_point_lies_on_both_sides_of_every_effect_and_at_every_edge() -> None:
    found = points(call(0, *TRANSACTION), [0])
    assert [point.id for point in found] == [
        "b0.call.begins",
        "b0.call.1.before",
        "b0.call.1.after",
        "b0.call.2.before",
        "b0.call.2.after",
        "b0.call.returns",
        "b0.engine.commits",
    ]
    assert [check_id(point.id) for point in found]


def test_tasks_come_before_the_commit_of_a_writer_and_in_their_order() -> None:
    log = [*call(0, Kind.RENAME, where="commit"), *call(0, Kind.WRITE, where="task 1"), *call(0, where="task 0")]
    wheres = list(dict.fromkeys(point.where for point in points(log, [0])))
    assert wheres == ["task 0", "task 1", "commit", "engine"]


def test_an_effect_that_failed_and_another_driver_s_make_no_points() -> None:
    failed = Effect(0, "call", 1, Kind.COMMIT, "t", 11, failed=True)
    assert points([failed], [0]) == []
    assert points(call(0, Kind.COMMIT, driver=2), [0]) == []


def test_a_line_that_does_the_same_again_and_again_is_hit_at_its_first_two_and_its_last() -> None:
    log = [Effect(0, "call", n, Kind.WRITE, "t", 11, n) for n in range(1, 8)]
    plan = choose(log, 1, quick=False)
    assert [point.number for point in plan.chosen if point.side is Side.BEFORE] == [1, 2, 7]
    assert plan.total == 7 * 2 + 1


def test_quick_takes_two_batches_and_what_lasts() -> None:
    log = [effect for batch in range(3) for effect in call(batch, *TRANSACTION)]
    chosen = choose(log, 3, quick=True).chosen
    assert {point.batch for point in chosen} == {0, 1}
    assert "b0.call.2.after" in {point.id for point in chosen}
    assert "b0.call.1.after" not in {point.id for point in chosen}


def test_quick_cuts_before_the_first_and_the_last_effect_of_a_call_too() -> None:
    """What nobody saw lies beside what was seen."""
    many = (Kind.STATEMENT, Kind.COMMIT, Kind.STATEMENT, Kind.COMMIT)
    chosen = {point.id for point in choose(call(0, *many), 1, quick=True).chosen}
    assert {"b0.call.1.before", "b0.call.4.before"} <= chosen
    assert not {"b0.call.2.before", "b0.call.3.before"} & chosen


def test_where_there_are_too_many_points_the_edges_stay() -> None:
    log = [effect for batch in range(2) for effect in call(batch, *[Kind.COMMIT] * 30)]
    chosen = [point.id for point in choose(log, 2, quick=True).chosen]
    assert len(chosen) == QUICK_POINTS
    assert {"b0.call.1.before", "b0.call.30.before", "b0.call.30.after", "b1.call.30.after"} <= set(chosen)
    assert not any(name.endswith(".before") for name in chosen if name[1] == "1")


def test_quick_cuts_lines_that_only_a_later_batch_has() -> None:
    """Every third batch compacts, also after many effects of the usual kind."""
    usual = [Effect(batch, "call", n, Kind.COMMIT, "t", 10 + n) for batch in range(3) for n in range(1, 13)]
    rare = [Effect(2, "call", 12 + n, kind, "t", 90 + n) for n, kind in enumerate((Kind.RENAME, Kind.UNLINK), start=1)]
    ends = [Effect(batch, "call", 99, Kind.RETURN, "", 0) for batch in range(3)]
    plan = choose([*usual, *rare, *ends], 3, quick=True)
    ids = [point.id for point in plan.chosen]
    assert {"b2.call.13.before", "b2.call.13.after", "b2.call.14.after"} <= set(ids)
    assert len(ids) == QUICK_POINTS
    assert not {point.line for point in plan.chosen if point.batch == 2} - {0, 22, 91, 92}
    assert {"b0.call.1.before", "b0.call.12.after", "b1.call.12.after"} <= set(ids)


def test_quick_keeps_half_of_its_points_for_usual_lines() -> None:
    usual = [Effect(batch, "call", n, Kind.COMMIT, "t", 10 + n) for batch in range(3) for n in range(1, 13)]
    rare = [Effect(2, "call", 12 + n, Kind.UNLINK, "t", 90 + n) for n in range(1, 31)]
    chosen = choose([*usual, *rare], 3, quick=True).chosen
    assert len(chosen) == QUICK_POINTS
    assert sum(point.line > 90 for point in chosen) == QUICK_POINTS // 2


def test_quick_cuts_a_helper_s_line_that_only_a_later_batch_executes_again() -> None:
    usual = [Effect(batch, "call", 1, Kind.RENAME, "t", 11) for batch in range(3)]
    plan = choose([*usual, Effect(2, "call", 2, Kind.RENAME, "t", 11, 2)], 3, quick=True)
    assert {"b2.call.2.before", "b2.call.2.after"} <= {point.id for point in plan.chosen}
    assert "b2.call.1.before" not in {point.id for point in plan.chosen}


PART = 17
"""The one part of thirty that takes two writes."""


def thirty_parts(batch: int, *, twice: int = PART) -> list[Effect]:
    """A file for each part, by two lines; one part takes two writes of the same line."""
    kinds = [kind for part in range(30) for kind in (Kind.CREATE, *[Kind.WRITE] * (2 if part == twice else 1))]
    effects = []
    for number, kind in enumerate(kinds, start=1):
        line = 11 if kind is Kind.CREATE else 12
        part = kinds[:number].count(Kind.CREATE)
        nth = kinds[:number].count(kind)
        effects.append(Effect(batch, "call", number, kind, f"/part-{part}", line, nth))
    return effects


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("batches", [(0, 1, 2), (1,)])
def test_the_gap_that_one_part_in_thirty_has_is_cut(quick: bool, batches: tuple[int, ...]) -> None:
    log = [each for n in range(3) for each in thirty_parts(n, twice=PART if n in batches else -1)]
    plan = choose(log, 3, quick=quick)
    between = [each for each, after in pairwise(log) if each.kind is after.kind is Kind.WRITE]
    assert len(between) == len(batches)
    assert between[0].point(Side.AFTER) in plan.chosen
    assert len(plan.chosen) < plan.total == sum(len(thirty_parts(n)) - (n not in batches) for n in range(3)) * 2 + 3


def test_a_part_that_is_written_twice_is_seen_by_its_target_too() -> None:
    """No other line lies between the parts."""
    targets = [f"/part-{n}" for n in range(30)]
    targets.insert(PART, targets[PART])
    log = [Effect(0, "call", n, Kind.WRITE, target, 11, n) for n, target in enumerate(targets, start=1)]
    chosen = choose(log, 1, quick=False).chosen
    assert {log[PART].point(Side.AFTER), log[PART + 1].point(Side.BEFORE)} <= set(chosen)
    assert len(chosen) < 20


def test_a_large_batch_is_cut_where_a_line_lasts_several_times_only_there() -> None:
    small = [Effect(0, "call", n, Kind.COMMIT, "t", 11, n) for n in (1,)]
    small += [Effect(0, "call", 1 + n, Kind.COMMIT, "t", 12, n) for n in (1, 2)]
    chunks = [Effect(0, "call", n, Kind.COMMIT, "t", 11, n) for n in (1, 2, 3)]
    rows = [Effect(0, "call", 3 + n, Kind.COMMIT, "t", 12, n) for n in range(1, 9)]
    other = [Effect(0, "call", 12, Kind.WRITE, "t", 13, 1)]
    found = large_points([*chunks, *rows, *other], small)
    assert [(point.line, point.number) for point in found] == [(11, 1), (13, 12)]
    assert large_points(small, small) == []


def test_what_happens_after_the_return_is_no_point() -> None:
    late = Effect(0, "call", 3, Kind.COMMIT, "t", 13, late=True)
    log = [*call(0, Kind.COMMIT), late]
    assert points(log, [0]) == points(call(0, Kind.COMMIT), [0])
    assert not unfinished(points(log, [0])[2], log)
    assert zombie_point([late]) is None


def test_the_same_log_gives_the_same_pairs() -> None:
    first = points(call(0, *TRANSACTION), [0])
    logs = {point: [*call(0, *TRANSACTION), *call(0, *TRANSACTION, driver=2)] for point in first}
    found = pairs(logs, call(0, *TRANSACTION), quick=False)
    assert found == pairs(logs, call(0, *TRANSACTION), quick=False)
    assert found.total == len(first) * 5
    assert all(pair.second.kind is not Kind.BEGIN for pair in found.chosen)


def test_a_recovery_that_does_nothing_has_no_second_crash() -> None:
    assert pairs({points(call(0), [0])[0]: call(0)}, call(0), quick=False) == ((), 0, frozenset())


def test_what_only_a_recovery_does_is_cut_in_any_case() -> None:
    """One of some hundred pairs, and the one at which a repair that dies does harm."""
    usual = call(0, *[Kind.COMMIT] * 20)
    repair = [Effect(0, "call", n, Kind.COMMIT, "t", 90 + n, driver=2) for n in (1, 2)]
    again = [Effect(0, "call", 2 + n, Kind.COMMIT, "t", 10 + n, driver=2) for n in range(1, 21)]
    # The last crash leads to no repair, as behind a marker that is there.
    first = points(usual, [0])
    logs = {point: [*usual, *repair, *again] for point in first[:-1]}
    logs[first[-1]] = [*usual, *again]
    chosen, total, directed = pairs(logs, usual, quick=True)
    assert total > 500
    assert {pair.id for pair in chosen if pair.second.line > 90} <= directed
    cut = {pair.second.line: pair for pair in chosen if pair.second.line > 90}
    assert set(cut) == {91, 92}
    assert {pair.first for pair in cut.values()} == {first[-2]}
    assert all(pair.second.side is Side.AFTER for pair in cut.values())


def test_directed_pairs_are_counted_beyond_the_most_that_are_tried() -> None:
    usual = call(0, Kind.COMMIT)
    repair = [Effect(0, "call", n, Kind.COMMIT, "t", 90 + n, driver=2) for n in range(1, QUICK_REPAIRS + 4)]
    first = points(usual, [0])[-1]
    chosen, _, directed = pairs({first: [*usual, *repair]}, usual, quick=True)
    assert len(directed) == QUICK_REPAIRS + 3
    assert len(directed - {pair.id for pair in chosen}) in (1, 2, 3)


def test_a_crash_at_the_deciding_point_is_repeated_in_the_recovery_and_in_the_next_batch() -> None:
    """The recovery cleans up first, so that the same effect has another number."""
    healthy = [*call(0, *TRANSACTION), *call(1, *TRANSACTION)]
    clean = Effect(0, "call", 1, Kind.UNLINK, "t", 5, driver=2)
    again = [replace(each, number=each.number + 1) for each in call(0, *TRANSACTION, driver=2) if each.number]
    logs = {point: [*healthy, clean, *again, *call(1, *TRANSACTION, driver=2)] for point in points(healthy, [0])}
    logs |= {point: [*healthy, *call(1, *TRANSACTION, driver=2)] for point in points(healthy, [1])}
    found = pairs(logs, healthy, quick=True)
    wanted = {"b0.call.2.after+b0.call.3.after", "b1.call.2.after+b1.call.2.after", "b0.call.2.after+b1.call.2.after"}
    assert wanted <= {pair.id for pair in found.chosen}
    assert wanted <= found.directed
    seconds = {point.id for point in second_points(deciding_points(healthy)[0], logs[deciding_points(healthy)[0]])}
    assert {"b0.call.3.after", "b1.call.2.after"} <= seconds
    assert "b1.call.1.after" not in seconds


def test_a_recovery_that_skips_the_batch_does_not_pass_the_point_again() -> None:
    healthy = [*call(0, *TRANSACTION), *call(1, *TRANSACTION)]
    log = [*healthy, *call(0, driver=2), *call(1, driver=2)]
    logs = dict.fromkeys(points(healthy, [0, 1]), log)
    assert pairs(logs, healthy, quick=True).directed == frozenset()


def test_a_batch_is_unfinished_until_its_last_lasting_effect() -> None:
    log = call(0, Kind.STATEMENT, Kind.COMMIT, Kind.COMMIT, Kind.UNLINK)
    said = {point.id: unfinished(point, log) for point in points(log, [0])}
    assert said["b0.call.2.after"]
    assert said["b0.call.3.before"]
    assert not said["b0.call.3.after"]
    assert not said["b0.engine.commits"]


def test_where_a_task_dies_a_driver_stops_and_a_batch_ends() -> None:
    log = [*call(1, *TRANSACTION, where="task 0"), *call(1, Kind.RENAME, where="commit")]
    assert retry_point(log) == Point(1, "task 0", 2, Kind.COMMIT, Side.AFTER, 12)
    assert zombie_point(log) == Point(1, "task 0", 2, Kind.COMMIT, Side.BEFORE, 12)
    assert last_point(log) == Point(1, "commit", 2, Kind.RETURN, Side.AFTER)
    assert retry_point(call(1, *TRANSACTION)) is None


def test_a_line_that_was_not_finished_is_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"batch": 0, "where": "call", "number": 1, "kind": "commit", "target": "", "line": 3, "driv')
    assert read_log(path) == []


@pytest.mark.parametrize("text", ["b0", "b0.call.3", "b0.call.3.after; rm", "healthy+b0.call.begins"])
def test_another_form_of_an_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="write an id of a point"):
        check_id(text)
