"""The parts of a test of a pipeline: names, places, what is seen, why it is weak. Nothing is started."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.crashtest.blackbox import runs
from labkit.crashtest.blackbox.campaign import Campaign, Further
from labkit.crashtest.blackbox.diagnosis import (
    AFTER,
    AGAIN,
    COVERS,
    EITHER,
    FLUSH,
    FORGIVE,
    KEY,
    MARKER,
    OVERWRITE,
    PLAIN,
    QUERY,
    SERVER,
    STEP,
    TOGETHER,
    UNDO,
    WHOLE,
    Stretch,
    _apart,
    diagnose,
)
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.execution import Silence
from labkit.crashtest.blackbox.expectation import expect
from labkit.crashtest.blackbox.healthy import Healthy
from labkit.crashtest.blackbox.jobs import GROWN, NEW_INPUT
from labkit.crashtest.blackbox.points import (
    EXIT,
    Crashes,
    Point,
    Recoveries,
    States,
    behind_sync,
    choose,
    name_of,
    points,
)
from labkit.crashtest.blackbox.seeing import Glance, blind_spots, doubts, log_notes, logs, replaces, showing
from labkit.crashtest.blackbox.settings import pipeline_settings
from labkit.crashtest.ledger import Job, silent
from labkit.crashtest.report import Diagnosis, Recipe
from labkit.crashtest.verdict import Coverage, Group, Result, summarise
from labkit.host.changed_lines import ChangedLines
from labkit.host.file_reads import FileReads
from labkit.host.python_line import Line
from labkit.host.syscalls.calls import Call, CallKind

STORE = Path("/job/store")


def call(kind: CallKind, path: str = "", target: str = "") -> Call:
    return Call(1, 1, 1, kind, f"a {kind} call", path, target, 0, 0.0)


def effects(*said: str) -> list[Effect]:
    """As in `write all.txt`, `rename a b`, `send 127.0.0.1:1`, `exit`."""
    namer = Namer([STORE])
    found = []
    for one in said:
        kind, *names = one.split()
        if kind == "send":
            asked = call(CallKind.SEND, "", names[0])
        else:
            asked = call(CallKind(kind), *(str(STORE / name) for name in names))
        found.append(namer.name(asked))
    return found


TODAY = datetime.now(UTC).date().isoformat()
UUID = "b65bad4e-abcd-4b0f-90ca-b6c1eeafae6f"


@pytest.mark.parametrize(
    ("path", "masked"),
    [
        ("load/1764029102.52547/schema.json", "load/<n>/schema.json"),
        (f"b65/{UUID}/data.bin", "<hex>/<uuid>/data.bin"),
        (f"c65/{UUID}/data.bin", "c65/<uuid>/data.bin"),
        ("data/20261127.3.json", "data/<n>.3.json"),
        (f"rows-{TODAY}T05:44:39.993003.txt", "rows-<time>.txt"),
        (f"{TODAY.replace('-', '')}_0544/part-3", "<time>/part-3"),
        (f"day={TODAY}/a", f"day={TODAY}/a"),
        ("rows-2021-03-04T05:44:39", "rows-2021-03-04T05:44:39"),
        (".tmp_641tvw3q", ".tmp<x>"),
        (".tmp_tf7m_7ew", ".tmp<x>"),
        ("tmp_download", "tmp_download"),
    ],
    ids=[
        *("time with a fraction", "first digits of a UUID", "other digits", "day", "time of day", "short time of day"),
        *("day of a partition", "time in the data", "prefix", "prefix with _", "word"),
    ],
)
def test_a_name_that_differs_from_run_to_run_has_one_that_lasts(path: str, masked: str) -> None:
    assert effects(f"create {path}")[0].where == masked


def test_every_place_is_before_an_effect_or_the_end() -> None:
    found = points(effects("create a", "write a", "write a", "exit"))
    assert [each.name for each in found] == ["create a #1", "write a #1", "write a #2", EXIT]
    assert [each.after for each in found] == ["", "create a #1", "write a #1", "write a #2"]
    assert str(found[-1]) == "at the end of the command, after write a #2"


def test_a_command_that_never_ends_has_an_end_too() -> None:
    assert [each.name for each in points(effects("write a"))] == ["write a #1", EXIT]


def many() -> list[Effect]:
    return effects(*["write log", "sync log"] * 100, "rename .a a", "write log", "exit")


def test_few_places_are_those_behind_changes_before_renames_and_the_end() -> None:
    assert points(many(), within=True)[-1].number == 103
    plan = choose(many(), {"rename a #1"}, 6)
    names = [each.name for each in plan]
    assert len(names) == 6
    assert {"rename a #1", "write log #101", EXIT} <= set(names)
    assert "write log #1" in names


def test_all_places_are_chosen_where_they_are_few_and_in_their_order() -> None:
    plan = choose(many()[-5:], set(), 60)
    assert plan == points(many()[-5:])


def test_of_many_that_are_alike_the_last_and_the_first_two_come_first() -> None:
    plan = choose(effects(*["rename .a a"] * 30), set(), 4)
    names = [each.name for each in plan]
    assert names == ["rename a #1", "rename a #2", "rename a #30", EXIT]


def test_second_crashes_are_spread_over_the_first_ones() -> None:
    recovery = effects(*["write a"] * 9, "exit")
    first = [Point(f"p{number}", number) for number in range(4)]
    chosen, found, directed = Recoveries({(at,): recovery for at in first}, recovery).pairs(4)
    assert len(found) == 4 * 9
    assert {each.first for each in chosen} == set(first)
    assert Recoveries({(at,): recovery for at in first}, recovery).pairs(4) == (chosen, found, directed)
    assert not directed


def test_most_second_crashes_cut_what_is_done_again_behind_what_shows_rows() -> None:
    """The second time everything is done again although it was all there: only so readers see it go back."""
    recovery = effects(*["write a", "write b", "rename .c c"] * 9, "exit")
    first = [*(Point(f"p{number}", number) for number in range(6)), Point(EXIT, 7)]
    chosen, found, directed = Recoveries({(at,): recovery for at in first}, recovery, {"write a"}).pairs(3, 0)
    assert directed == {"exit then exit"}
    assert len(found) == 7 * 27 + 1
    told = [each for each in chosen if each.first.name == EXIT]
    assert len(told) == 2
    assert all(each.second.after.startswith("write a #") for each in told)
    unseen, _, _ = Recoveries({(at,): recovery for at in first}, recovery).pairs(3, 0)
    told = [each for each in unseen if each.first.name == EXIT]
    assert all(each.second.name.startswith("rename c #") for each in told[:2])


def test_places_behind_effects_like_one_that_showed_rows_are_as_important() -> None:
    """Whether a reader saw the one or the other depends on who was quicker."""
    done = effects(*["write log", "write a"] * 30, *["rename .b b"] * 9, "exit")
    few = choose(done, {"write a #3"}, 9)
    assert few == choose(done, {"write a #21", "write a #8"}, 9)
    assert sum(each.after.startswith("write a") for each in few) == 4
    assert sum(each.after.startswith("write a") for each in choose(done, (), 9)) < 4


WRITES = effects("create a", "write a", "sync a", "write a", "exit")


def glances(*rows: int) -> list[Glance]:
    """How many rows there were before each effect, and at the end."""
    seen = [Glance(n, {f"row {m}": 1 for m in range(count)}) for n, count in enumerate(rows)]
    return [Glance(0, {}), *seen]


def test_rows_that_an_effect_explains_raise_no_doubt() -> None:
    taken = glances(0, 0, 2, 2, 3, 3)
    assert doubts(taken, WRITES, {}, [STORE]) == []
    assert showing(taken, WRITES) == {"write a #1", "write a #2"}
    assert not replaces(taken)


def test_whatever_happened_while_the_reader_was_locked_out_may_have_shown_rows() -> None:
    """The lock may be the user's own, so the last call need not be the one that counts; in a transaction none does."""
    done = effects("create a", "write a", "write done", "rename .o o", "write a", "exit")
    taken = [Glance(0, {}), Glance(0, {}), Glance(4, {"row": 1}), Glance(6, {"row": 2})]
    shown = {"create a #1", "write a #1", "write done #1", "rename o #1", "write a #2"}
    assert showing(taken, done) == shown
    assert showing(taken, done, {"o"}) == shown
    taken[2] = Glance(5, {"row": 1})
    assert showing(taken, done, {"o"}) == shown - {"rename o #1"}
    in_transaction = effects("create a-journal", "write a-journal", "write a", "unlink a-journal", "write b", "exit")
    assert showing([Glance(0, {}), Glance(0, {}), Glance(4, {"row": 1})], in_transaction) == {"unlink a-journal #1"}
    many = effects(*["write a", "write b"] * 11, "exit")
    assert showing([Glance(0, {}), Glance(0, {}), Glance(22, {"row": 1})], many) == {"write b #11"}


def test_rows_that_appear_where_only_a_sync_was_seen_do() -> None:
    (said,) = doubts(glances(0, 0, 0, 2, 3, 3), WRITES, {}, [STORE])
    assert "2 row(s) appeared between [before sync a #1] and [before write a #2]" in said
    (said,) = doubts(glances(3, 3, 3, 3, 3, 3), WRITES, {}, [STORE])
    assert "3 row(s) appeared between the start and [before create a #1]" in said


def test_the_sync_of_a_databases_log_shows_a_commit_and_that_of_its_data_none() -> None:
    wal = effects("write store/a-wal", "sync store/a-wal", "write store/a-wal", "exit")
    assert doubts(glances(0, 0, 2, 2, 2), wal, {}, [STORE]) == []
    data = effects("write store/a-wal", "sync store/a", "write store/a-wal", "exit")
    (said,) = doubts(glances(0, 0, 2, 2, 2), data, {}, [STORE])
    assert "2 row(s) appeared between [before sync store/a #1]" in said


def test_a_line_in_a_log_explains_no_rows() -> None:
    done = effects("rename .a a", "write log", "sync a", "exit")
    assert doubts(glances(0, 3, 6, 6), done, {}, [STORE]) == []
    (said,) = doubts(glances(0, 3, 6, 6), done, {}, [STORE], {"log"})
    assert "3 row(s) appeared between [before write log #1]" in said


def test_what_was_sent_to_a_server_may_be_seen_a_little_later() -> None:
    sent = effects("send 127.0.0.1:1", *["sync a"] * 8)
    assert doubts(glances(0, 0, 0, 1, 1, 1, 1, 1, 1), sent, {}, [STORE]) == []
    assert doubts(glances(0, 0, 0, 0, 0, 0, 0, 1, 1), sent, {}, [STORE]) != []


def test_nothing_that_was_seen_is_a_doubt() -> None:
    (said,) = doubts([], effects("exit"), {}, [STORE])
    assert "no durable effect was seen in /job/store" in said


def test_what_the_kernel_cannot_tell_is_a_doubt_for_the_pipeline_s_files_only() -> None:
    namer = Namer([STORE], ["*.log"])
    paths = {"mmap": ("/job/store/a", "/tmp/x", "/job/store/a.log", "/job/store/db-shm")}
    assert blind_spots(["mmap"], paths, namer) == {"mmap": ["/job/store/a"]}
    assert blind_spots(["mmap"], {"mmap": ("/tmp/x",)}, namer) == {}
    assert blind_spots(["io_uring"], {}, namer) == {"io_uring": []}
    (said,) = doubts([], WRITES, {"mmap": ["/job/store/a"]}, [STORE])
    assert "cannot be followed: mmap (a; --ignore GLOB" in said


def test_a_pattern_of_ignore_means_the_same_files_whether_their_writes_were_seen_or_not() -> None:
    """A file that the test still kills at must not drop out of the doubts."""
    namer, path = Namer([STORE], ["out/*.log"]), str(STORE / "deeper/out/x.log")
    assert namer.file(path) is not None
    assert blind_spots(["mmap"], {"mmap": (path,)}, namer) == {"mmap": [path]}
    assert blind_spots(["mmap"], {"mmap": (str(STORE / "out/x.log"),)}, namer) == {}


def result(name: str, *seen: int) -> Result:
    records = [Record(number, f"k{number}", 0) for number in range(3)]
    events = [Observation(*records[number], 0, 1) for number in seen]
    verdict = judge(records, History([*events, Reading("end")]))
    return Result(name, name, Group.CRASH, verdict=verdict)


def diagnosed(*runs: tuple[str, Sequence[int]], files: dict[str, str] | None = None) -> Diagnosis | None:
    results = [result(name, *seen) for name, seen in runs]
    after = ["", *(name for name, _ in runs)]
    named = {name: Point(name, n, after[n]) for n, (name, _) in enumerate(runs)}
    return diagnose(summarise(results, Coverage(3, 0, 3, 3)), named, files=files)


def found(*runs: tuple[str, Sequence[int]]) -> tuple[str, str]:
    diagnosis = diagnosed(*runs)
    return ("", "") if diagnosis is None else (diagnosis.code, diagnosis.why)


GOOD, TWICE, FEWER = (0, 1, 2), (0, 0, 1, 2), (0, 1)


def test_the_diagnosis_names_the_effects_between_which_a_crash_does_harm() -> None:
    code, why = found(("data", GOOD), ("mark", TWICE), (EXIT, GOOD))
    assert code == "marker after the data"
    assert "between [data] and [mark]" in why
    code, why = found(("mark", GOOD), ("data", FEWER), (EXIT, GOOD))
    assert code == "marker before the data"
    assert found(("a", GOOD), ("b", TWICE), (EXIT, TWICE))[0] == "replay not recognised"
    assert found(("a", GOOD), (EXIT, GOOD)) == ("", "")


BOTH = (0, 0, 1)


@pytest.mark.parametrize(
    ("opening", "closing", "harm", "code", "recipe", "why"),
    [
        ("write pos #1", "write out #1", FEWER, "marker before the data", AFTER, "its rows are not written"),
        ("create x.csv #1", "write x.csv #1", FEWER, "part taken for the whole", WHOLE, "the part of x.csv"),
        ("write out #1", "write out #2", FEWER, "part taken for the whole", WHOLE, "the part of out"),
        ("write db-wal #1", "write db-wal #2", FEWER, "marker before the data", AFTER, "its rows are not written"),
        ("unlink db-journal #1", "unlink db-journal #2", FEWER, "marker before the data", AFTER, "are not written"),
        ("rename snap #1", "truncate log #1", FEWER, "not one step", STEP, "rows are missing at the end"),
        ("rename snap #1", "truncate log #1", BOTH, "not one step", EITHER, "lost in 1 of the runs"),
        ("write out #1", "rename pos #1", TWICE, "marker after the data", MARKER, "they must be one step"),
        ("send h:1 POST #1", "rename pos #1", TWICE, "marker after the data", KEY, "nothing tells the next start"),
        ("send h:1 POST #1", EXIT, TWICE, "replay not recognised", KEY, "writes them again"),
        ("send h:1 #1", "rename pos #1", TWICE, "marker after the data", SERVER, "nothing tells the next"),
        ("send h:1 DELETE #1", "rename pos #1", TWICE, "marker after the data", SERVER, "nothing tells"),
        ("send h:1 COMMIT #1", "rename pos #1", TWICE, "marker after the data", MARKER, "they must be one step"),
    ],
)
def test_the_repair_fits_the_two_effects_between_which_a_crash_does_harm(
    opening: str, closing: str, harm: Sequence[int], code: str, recipe: Recipe, why: str
) -> None:
    diagnosis = diagnosed((opening, GOOD), (closing, harm))
    assert (diagnosis.code, diagnosis.recipe) == (code, recipe)
    assert why in diagnosis.why
    assert (recipe is KEY or recipe is SERVER) == ("one step" not in diagnosis.why)


def test_no_order_of_two_steps_is_recommended_if_one_run_loses_rows_and_another_doubles_them() -> None:
    diagnosis = diagnosed(("write pos #1", GOOD), ("write out #1", FEWER), ("write out #2", TWICE), (EXIT, GOOD))
    assert (diagnosis.code, diagnosis.recipe) == ("not one step", EITHER)
    assert diagnosis.why.endswith("rows are lost in 1 of the runs with crashes and doubled in 1")


def test_a_crash_during_recovery_that_loses_rows_needs_more_than_an_order_if_others_double_rows() -> None:
    pair = replace(result("a then b", *FEWER), group=Group.PAIR)
    for single, recipe in ((GOOD, AGAIN), (TWICE, EITHER)):
        summary = summarise([result("a", *single), pair], Coverage(1, 1, 2, 2))
        diagnosis = diagnose(summary, {"a": Point("a", 1)})
        assert (diagnosis.code, diagnosis.recipe) == ("recovery", recipe)
        assert ("doubled in 1" in diagnosis.why) == (recipe is EITHER)


def test_the_harm_of_crashes_is_told_beside_that_of_a_second_query() -> None:
    query = replace(result("fresh_checkpoint", *FEWER), group=Group.IDENTITY)
    points = {"data": Point("data", 0), "mark": Point("mark", 1, "data")}
    for after_crash, told in ((GOOD, False), (TWICE, True)):
        summary = summarise([result("data", *GOOD), result("mark", *after_crash), query], Coverage(2, 0, 2, 2))
        diagnosis = diagnose(summary, points)
        assert (diagnosis.code, diagnosis.recipe) == ("key outlives the query", QUERY)
        assert ("between [data] and [mark]" in diagnosis.why, MARKER.name in diagnosis.why) == (told, told)


def test_rows_that_only_two_queries_at_the_same_time_lose_were_not_taken_for_older_ones() -> None:
    """Two queries that write back what they have read lose rows although each keeps its whole id as its key."""
    both, fresh = (replace(result(name, *FEWER), group=Group.IDENTITY) for name in ("two_queries", "fresh_checkpoint"))
    alone = diagnose(summarise([both], Coverage(1, 0, 1, 1)), {})
    assert (alone.code, alone.recipe) == ("queries disturb each other", TOGETHER)
    for results in ([both, fresh], [fresh, both]):
        assert diagnose(summarise(results, Coverage(1, 0, 2, 2)), {}).recipe == QUERY


def test_a_query_that_fails_beside_another_one_needs_room_and_no_marker() -> None:
    query = replace(result("two_queries", *GOOD), group=Group.IDENTITY, evidence=(), stuck="the sink raised an error")
    diagnosis = diagnose(summarise([query], Coverage(1, 0, 1, 1)), {})
    assert (diagnosis.code, diagnosis.recipe) == ("stuck without a crash", TOGETHER)


def test_two_files_with_one_masked_path_are_not_two_parts_of_one_file() -> None:
    runs = ("write out/<n> #1", GOOD), ("write out/<n> #2", FEWER)
    for second, recipe in (("out/1", WHOLE), ("out/2", AFTER)):
        diagnosis = diagnosed(*runs, files={"write out/<n> #1": "out/1", "write out/<n> #2": second})
        assert diagnosis.recipe == recipe


def test_a_write_that_a_crash_cuts_is_itself_the_step_that_was_half_done() -> None:
    cut = Point("within write out #1, last page", 2, "write pos #1", cut=4096)
    before = Point("write out #1", 1, "write pos #1")
    results = [result(before.name, *GOOD), result(cut.name, *FEWER)]
    diagnosis = diagnose(summarise(results, Coverage(2, 0, 2, 2)), {each.name: each for each in (before, cut)})
    assert (diagnosis.code, diagnosis.recipe) == ("part taken for the whole", WHOLE)
    assert "a crash within [write out #1, last page] does harm" in diagnosis.why
    # If no harmless crash before the write was tried, an earlier effect may be to blame, such as a marker.
    alone = diagnose(summarise(results[1:], Coverage(2, 0, 1, 1)), {cut.name: cut})
    assert (alone.code, alone.recipe) == ("not one step", STEP)
    assert "a crash within [write out #1, last page] does harm" in alone.why
    assert "no harmless crash before [write out #1] was tried" in alone.why


@pytest.mark.parametrize("harm", ["duplicate", "regression", "aborted_read", "fractured_read", "stuck"])
def test_the_effect_before_a_cut_write_is_not_blamed(harm: str) -> None:
    """Crashes before and after the write do no harm, so only the cut does, as of a line that no start can parse."""
    places = [Point("write out #2", 2, "write out #1"), Point("exit", 4, "write out #2")]
    cut = Point("within write out #2, in the last row", 3, "write out #1", cut=7)
    good = [result(place.name, *GOOD) for place in places]
    bad = result(cut.name, *(TWICE if harm == "duplicate" else GOOD))
    bad = replace(bad, stuck="it ended with exit code 1") if harm == "stuck" else bad
    if harm not in ("stuck", "duplicate"):
        bad = replace(bad, verdict=replace(bad.verdict, **{harm: (2,)}))
    named = {each.name: each for each in (*places, cut)}
    why = diagnose(summarise([*good, bad], Coverage(3, 0, 3, 3)), named).why
    assert "within [write out #2, in the last row]" in why
    assert "[write out #1]" not in why
    assert "one step" not in why


def test_harm_that_begins_within_a_write_does_not_begin_before_it() -> None:
    """A crash before the write was tried and did no harm; the line of the write is the first that matters."""
    one, other, last = (Line("job.py", number, "put") for number in (1, 2, 3))
    before = Point("write out #2", 2, "write out #1", other, one)
    cut = Point("within write out #2", 3, "write out #1", other, one, 7)
    after = Point("rename done #1", 4, "write out #2", last, other)
    runs = [result(before.name, *GOOD), result(cut.name, *FEWER), result(after.name, *FEWER)]
    found = summarise(runs, Coverage(3, 0, 3, 3))
    why = diagnose(found, {each.name: each for each in (before, cut, after)}).why
    assert "within [write out #2 (job.py:2 in put)] or later, up to [rename done #1 (job.py:3 in put)]" in why
    assert "write out #1" not in why


@pytest.mark.parametrize(
    ("opening", "closing", "harm", "recipe"),
    [("create out #1", "write out #1", FEWER, STEP), ("send h:1 POST #1", "rename pos #1", TWICE, SERVER)],
)
def test_an_effect_is_not_blamed_if_no_crash_before_it_was_tried(
    opening: str, closing: str, harm: Sequence[int], recipe: Recipe
) -> None:
    """An earlier effect may do the same harm, so the repair must help in either case."""
    point = Point(closing, 2, opening)
    diagnosis = diagnose(summarise([result(closing, *harm)], Coverage(1, 0, 1, 1)), {closing: point})
    assert diagnosis.recipe == recipe


def test_rows_that_could_be_read_and_are_gone_were_not_merely_left_unwritten() -> None:
    point = Point("write undo #1", 2, "create undo #1")
    bad = result(point.name, *FEWER)
    for gone, recipe in (((2,), UNDO), ((0,), STEP), ((), STEP)):
        removed = replace(bad, verdict=replace(bad.verdict, aborted_read=gone))
        diagnosis = diagnose(summarise([removed], Coverage(1, 0, 1, 1)), {point.name: point})
        assert diagnosis.recipe == recipe
        assert ("rows that could be read" in diagnosis.why) == (recipe is UNDO)


@pytest.mark.parametrize(
    ("axis", "what", "recipe"),
    [
        ("aborted_read", "that disappear later", OVERWRITE),
        ("precommitted_read", "has not finished", OVERWRITE),
        ("fractured_read", "a part of a batch", WHOLE),
    ],
)
def test_rows_that_were_read_too_early_are_told_as_they_were(axis: str, what: str, recipe: Recipe) -> None:
    """Only rows of one of the three kinds disappear later."""
    good = result("rename out #1", *GOOD)
    point = Point(good.id, 2, "write out #1")
    for group in (Group.CRASH, Group.PAIR, Group.LARGE):
        bad = replace(good, verdict=replace(good.verdict, **{axis: (2,)}), group=group, evidence=[{"point": "x"}])
        diagnosis = diagnose(summarise([bad], Coverage(1, 0, 1, 1)), {good.id: point} if group is Group.CRASH else {})
        if group is Group.LARGE:
            assert (diagnosis.code, diagnosis.recipe is WHOLE) == ("parts commit separately", recipe is WHOLE)
        else:
            assert (diagnosis.code, diagnosis.recipe) == ("readable too early", recipe)
            assert what in diagnosis.why
            # Nobody looks for an unfinished batch while one is replayed.
            assert ("replayed" in diagnosis.why) == (group is Group.PAIR and axis != "precommitted_read")


def test_where_only_some_crashes_remove_rows_the_repair_also_helps_the_others() -> None:
    places = [Point("create x #1", 1, "rename pos #1"), Point("write out #1", 2, "create x #1")]
    unwritten, bad = (result(place.name, *FEWER) for place in places)
    removed = replace(bad, verdict=replace(bad.verdict, aborted_read=(2,)))
    diagnosis = diagnose(summarise([unwritten, removed], Coverage(2, 0, 2, 2)), {each.name: each for each in places})
    assert diagnosis.recipe == AFTER


@pytest.mark.parametrize(
    ("name", "group", "harm", "crashed", "code", "recipe"),
    [
        ("healthy", Group.HEALTHY, {"seen": TWICE}, False, "wrong without a crash", PLAIN),
        ("healthy", Group.HEALTHY, {"seen": FEWER}, False, "wrong without a crash", FLUSH),
        ("large", Group.LARGE, {"seen": TWICE}, False, "wrong without a crash", PLAIN),
        ("large", Group.LARGE, {"stuck": "it ended with exit code 1"}, False, "wrong without a crash", PLAIN),
        ("large.x", Group.LARGE, {"seen": TWICE}, True, "parts commit separately", MARKER),
        ("large.x", Group.LARGE, {"stuck": "it ended with exit code 1"}, True, "stuck on the replay", FORGIVE),
        ("retry", Group.RETRY, {"seen": TWICE}, True, "attempts", OVERWRITE),
        ("retry", Group.RETRY, {"seen": FEWER}, True, "attempts", AFTER),
        ("retry", Group.RETRY, {"stuck": "it ended with exit code 1"}, True, "stuck on the replay", FORGIVE),
        (NEW_INPUT, Group.IDENTITY, {"seen": FEWER}, True, "new input is skipped", COVERS),
        (f"{GROWN}x", Group.IDENTITY, {"seen": FEWER}, True, "new input is skipped", COVERS),
        (f"{GROWN}x", Group.IDENTITY, {"seen": TWICE}, True, "old input is repeated", COVERS),
        (f"{GROWN}x then y", Group.PAIR, {"seen": TWICE}, True, "recovery", AGAIN),
    ],
)
def test_the_diagnosis_names_no_cause_that_the_run_did_not_have(
    name: str, group: Group, harm: dict[str, Any], crashed: bool, code: str, recipe: Recipe
) -> None:
    bad = replace(result(name, *harm.get("seen", GOOD)), group=group, stuck=harm.get("stuck", ""))
    bad = replace(bad, evidence=[{"point": "x"}] if crashed else [])
    diagnosis = diagnose(summarise([bad], Coverage(1, 0, 1, 1)), {})
    assert (diagnosis.code, diagnosis.recipe) == (code, recipe)
    assert ("first attempt remain" in diagnosis.why) == (recipe is OVERWRITE)
    assert ("in parts" in diagnosis.why) == (recipe is MARKER)
    assert ("new input came after the first" in diagnosis.why) == (recipe is AGAIN)


def test_a_start_may_do_nothing_for_longer_before_its_first_effect() -> None:
    silence = Silence()
    silence.note(0.0, 8.0)
    silence.note(8.0, 8.5)
    assert silence.allowed(begun=False) == 1.0 + 3 * 8.0
    assert silence.allowed(begun=True) == 1.0 + 3 * 0.5


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"command": " "}, "the command is empty"),
        ({}, "--reader FILE:NAME"),
        ({"reader": "rows.py:read", "read_command": "cat"}, "--read-command"),
        ({"reader": "nowhere.py:read"}, "there is no file nowhere.py"),
        ({"read_command": "cat", "expected": "rows.jsonl"}, "there is no such file"),
        ({"read_command": "cat", "limit": 0}, "must be more than 0"),
        ({"read_command": "cat", "watch": ["rows.py"]}, "name a folder, such as the one that contains it"),
        ({"read_command": "cat", "power_cut": True}, "empties and rebuilds the watched folders"),
        ({"read_command": "cat", "checkpoint": "."}, "contains the working folder"),
        ({"read_command": "cat", "checkpoint": ".."}, "contains the working folder"),
        ({"read_command": "cat", "checkpoint": ""}, "--checkpoint : write a path, or leave"),
        ({"read_command": "cat", "watch": [""]}, "write a path"),
    ],
)
def test_what_makes_no_test_is_said_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, object], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.py").touch()
    with pytest.raises(InvalidInput, match=sentence):
        pipeline_settings(**{"command": "true", **given})


@pytest.mark.parametrize(
    ("folders", "labels"),
    [
        (["a/orders"], ["x"]),
        (["a/orders", "b/rows"], ["orders/x", "rows/x"]),
        (["a/orders", "b/orders"], ["a/orders/x", "b/orders/x"]),
        (["a/orders", "b/orders", "b/a/orders"], ["a/orders/x", "b/orders/x", "b/a/orders/x"]),
        (["a/orders", "a/orders"], ["x", "x"]),
    ],
)
def test_watched_folders_have_names_of_their_own(folders: list[str], labels: list[str]) -> None:
    """A rename from one of them to another must not look as if it changed nothing."""
    places = [Path("/job", each) for each in folders]
    namer = Namer(places)
    assert [namer.file(str(each / "x")) for each in places] == labels


def test_a_subfolder_has_another_name_than_a_watched_folder() -> None:
    namer = Namer([Path("/job"), Path("/elsewhere/orders")], unnamed=Path("/job"))
    paths = ("/job/orders/x", "/elsewhere/orders/x", "/job/orders", "/job/orders-2/x")
    assert [namer.file(path) for path in paths] == ["./orders/x", "orders/x", "./orders", "orders-2/x"]
    assert namer.file("/elsewhere/orders") == "orders"
    inside = Namer([Path("/job"), Path("/job/orders")], unnamed=Path("/job"))
    assert inside.file("/job/orders/x") == "orders/x"  # this is the watched folder itself
    ignoring = Namer([Path("/job"), Path("/elsewhere/orders")], ["orders/*"], unnamed=Path("/job"))
    assert [ignoring.file(path) for path in paths[:2]] == [None, None]


def test_the_command_that_repeats_a_run_is_quoted_for_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = pipeline_settings("sh job.sh | cat", read_command="cat out", reset="rm -f out", quick=True)
    assert settings.command() == (
        "labkit crashtest --command 'sh job.sh | cat' --quick --read-command 'cat out' --reset 'rm -f out'"
    )
    only = settings.command("rename part-<n> #2")
    assert only.endswith("--only 'rename part-<n> #2' --read-command 'cat out' --reset 'rm -f out'")


def test_points_at_what_looks_like_a_log_come_last_and_count() -> None:
    done = effects("create log", *["write log", "sync log", "write a"] * 3, "rename .b b", "exit")
    assert choose(done, (), 60, {"log"}) == points(done)
    few = [each.name for each in choose(done, {"write a #2"}, 5, {"log"})]
    assert few == ["write a #1", "write a #2", "write a #3", "rename b #1", EXIT]
    (said,) = log_notes(done, {"log"})
    assert "its 3 write(s) are tried last; --ignore log " in said
    (said,) = log_notes(effects("write log-1a2b3c4d5e"), {"log-<hex>"})
    assert "--ignore log-* " in said


def test_of_two_places_with_the_same_turn_that_of_the_rarer_family_comes_first() -> None:
    """As a compaction in one batch of many, which must not wait for every batch's usual steps."""
    done = effects(*["write a", "create b"] * 10, "create compacted", "write a", "create b", "exit")
    few = [each.name for each in choose(done, {"write a #1"}, 4)]
    assert few == ["create b #1", "create compacted #1", "create b #11", EXIT]


def at_lines(found: list[Effect], *numbers: int) -> list[Effect]:
    """The same effects, made by these lines of Python."""
    said = [Line("sink.py", number, "write_batch") for number in numbers]
    return [replace(each, call=replace(each.call, line=line)) for each, line in zip(found, said, strict=True)]


def test_places_between_two_lines_come_first_and_those_of_every_batch_before_others() -> None:
    """As between two transactions: the calls of both have the same names, and nobody can read between them."""
    batch = ["write a", "write a", "write a", "write b"]
    done = effects("create a", "write a", "write a", *batch * 3, "exit")
    few = [each.name for each in choose(at_lines(done, 1, 2, 2, *[5, 5, 7, 8] * 3, 9), (), 4)]
    assert few == ["write a #9", "write a #11", "write b #3", EXIT]
    assert few != [each.name for each in choose(done, (), 4)]
    # But not before all others.
    many = effects("rename .x x", *[f"write {name}" for name in "abcdefgh"], "exit")
    few = [each.name for each in choose(at_lines(many, *range(10)), (), 5)]
    assert few == ["rename x #1", "write f #1", "write g #1", "write h #1", EXIT]


def test_many_calls_of_a_helper_do_not_displace_a_point_between_two_lines() -> None:
    """As with a step that tidies up after the rows (line 20) and their marker (line 21)."""
    tidy = [Line("sink.py", 7, "execute", callers=(("sink.py", number),)) for number in range(30, 37)]
    batch = [Line("sink.py", 20, "put"), Line("sink.py", 21, "put"), *tidy]
    done = effects(*["write a"] * len(batch) * 3, "exit")
    lines = [*batch * 3, None]
    called = [replace(each, call=replace(each.call, line=line)) for each, line in zip(done, lines, strict=True)]
    assert "write a #20" in [each.name for each in choose(called, (), 6)]


@pytest.mark.parametrize(("line", "is_said"), [(7, True), (8, False), (None, False)])
def test_two_effects_of_one_line_are_called_so(line: int | None, is_said: bool) -> None:
    """As the COMMIT of two attached databases, which looks like one step."""
    place = Line("sink.py", 7, "write_batch")
    at = Point("write b #1", 2, "write a #1", line and place._replace(number=line), place)
    assert ("both by the same line" in _apart(Stretch(at, at))) is is_said


def test_two_statements_of_one_helper_are_told_apart_by_the_lines_that_call_it() -> None:
    """A quick test kills between them as between two lines, and the report names their callers."""
    helper = Line("sink.py", 7, "execute")
    marked, wrote = (helper._replace(callers=(("sink.py", 9), ("sink.py", number))) for number in (20, 21))
    done = effects("create a", *["write a", "write a"] * 3, "exit")
    lines = [helper, *[marked, wrote] * 3, None]
    called = [replace(each, call=replace(each.call, line=line)) for each, line in zip(done, lines, strict=True)]
    assert "write a #6" in [each.name for each in choose(called, (), 2)]
    assert "write a #6" not in [each.name for each in choose(at_lines(done, *[7] * 8), (), 2)]
    at = Point("write a #6", 2, "write a #5", wrote, marked)
    assert _apart(Stretch(at, at)).endswith("they must be one step (called from sink.py:20 and sink.py:21)")
    two_files = (helper._replace(callers=((f"{each}/util.py", 20),)) for each in "ab")
    other = at._replace(line=next(two_files), line_before=next(two_files))
    assert "(called from b/util.py:20 and a/util.py:20)" in _apart(Stretch(other, other))
    changed = ChangedLines({"/job/sink.py": frozenset({20})})
    assert at.has_changed(changed)
    assert not at._replace(line_before=wrote).has_changed(changed)


def test_a_place_behind_a_change_stays_one_where_a_log_or_a_sync_comes_first() -> None:
    done = effects(*["write a", "sync a", "write log", "create c"] * 20, "exit")
    few = [each.name for each in choose(done, {"write a #1"}, 4, {"log"})]
    assert few == ["create c #1", "create c #2", "create c #20", EXIT]


def test_a_sync_is_no_place_for_a_sigkill_but_one_for_the_power() -> None:
    done = effects("write a", "sync a", "sync .", "rename .b b", "sync b", "exit")
    assert [(each.name, each.after) for each in points(done)] == [
        ("write a #1", ""),
        ("rename b #1", "write a #1"),
        (EXIT, "rename b #1"),
    ]
    plan = choose(done, (), 60, syncs=True)
    assert [each.name for each in plan] == [each.name for each in done]
    assert behind_sync(done, "sync a #1") == "rename b #1"
    assert behind_sync(done, "sync b #1") == EXIT
    assert behind_sync(done, "rename b #1") == behind_sync(done, "sync c #1") == ""


HEALTHY = effects(*["write a", "rename .b b"] * 3, "exit")


Found = dict[Crashes, list[Effect]]


def names_of(recoveries: dict[str, list[Effect]], most: int | None = None) -> list[str]:
    """The directed pairs for recoveries by the name of the first crash, when `write a` changes the rows."""
    places = {each.name: each for each in points(HEALTHY)}
    found: Found = {(places[name],): done for name, done in recoveries.items()}
    return [each.name for each in Recoveries(found, HEALTHY, {"write a"}).pairs(0, most).chosen]


def test_what_only_a_recovery_does_is_cut_once_where_recoveries_are_alike() -> None:
    repair = effects("unlink undo", "truncate a", "sync a", "write a", "exit")
    found = names_of({"write a #1": repair, "write a #2": repair, "write a #3": effects("write a", "exit")})
    assert found == ["write a #2 then unlink undo #1", "write a #2 then truncate a #1"]


def test_the_rarest_family_that_only_a_recovery_has_comes_first() -> None:
    many_writes = effects(*["write undo"] * 5, "unlink undo", "exit")
    found = names_of({"write a #1": many_writes}, 2)
    assert found == ["write a #1 then unlink undo #1", "write a #1 then write undo #5"]


def test_the_same_crash_comes_twice_where_it_decides_and_the_recovery_passes_it() -> None:
    again = effects(*["write a", "rename .b b"] * 2, "exit")
    found = names_of(dict.fromkeys(("write a #1", "write a #2", "rename b #2", "rename b #3", EXIT), again))
    assert found[-1] == "exit then exit"
    assert "write a #2 then write a #2" not in found  # after a rename that changed nothing
    assert "rename b #2 then rename b #2" in found
    assert not any(name.startswith("rename b #3 then rename b #3") for name in found)


def test_one_pair_lies_in_two_batches() -> None:
    done = effects(*["write a", "rename .b b"] * 3, "exit")
    found = names_of({"rename b #1": done, "rename b #2": done, "write a #2": done})
    assert found[0] == "rename b #1 then rename b #3"
    assert len(found) == 1 + 2
    # A cut write before the points changes their numbers, and nothing else.
    cuts = {"": 7}
    cut = [replace(each, cuts=cuts) if each.name == "write a #1" else each for each in done]
    places = {each.name: each for each in points(cut, within=True)}
    found = Recoveries({(places[name],): done for name in ("rename b #1", "rename b #2", "write a #2")}, cut, ())
    assert [each.name for each in found.two_batches()] == ["rename b #1 then rename b #3"]


def by_states(is_whole: bool) -> list[str]:
    """The directed pairs where each state has a letter, and runs with one crash recover from `a` and `b` alone."""
    places = {each.name: each for each in points(HEALTHY)}
    first, last = places["write a #1"], places["rename b #3"]
    again = effects("write a", "rename .b b", "exit")
    before: dict[Crashes, dict[str, str]] = {
        (first,): {"write a #1": "a", "rename b #1": "c", EXIT: "c"},
        (last,): {"write a #1": "b", "rename b #1": "a", EXIT: "d"},
    }
    states = States(before, frozenset({"a", "b"}), is_whole=is_whole)
    recoveries: Found = {(first,): effects("write a", "rename .b b", "write a", "exit"), (last,): again}
    found = Recoveries(recoveries, HEALTHY, {"write a"}, states).pairs(0)
    assert found.directed == {each.name for each in found.chosen} <= found.every
    return [each.name for each in found.chosen]


def test_of_the_second_crashes_that_leave_equal_files_one_is_tried_and_none_where_one_crash_leaves_them() -> None:
    assert by_states(is_whole=True) == ["rename b #3 then exit", "write a #1 then rename b #1"]


def of_alike() -> Recoveries:
    """Restarts of which the first and second make the same calls, but each from files of its own."""
    usual = effects("create .b", "truncate .b", "write .b", "rename .b b", "exit")
    places = {each.name: each for each in points(usual)}
    recoveries: Found = {
        (places["create .b #1"],): effects("create .b", "write .b", "exit"),
        (places["write .b #1"],): effects("truncate .b", "write .b", "sync .b", "exit"),
        (places["rename b #1"],): effects("write .b", "exit"),
    }
    states = States(
        {at: {each.name: (at, each.name) for each in done} for at, done in recoveries.items()},
        frozenset(),
        is_whole=True,
    )
    return Recoveries(recoveries, usual, (), states)


def test_of_recoveries_that_do_the_same_one_is_cut_everywhere_and_the_new_states_of_others_follow() -> None:
    recoveries = of_alike()
    found = recoveries.directed()
    seconds = {
        first: [pair.second.name for pair in found if pair.first.name == first]
        for first in ("write .b #1", "rename b #1", "create .b #1")
    }
    assert {first: sorted(names) for first, names in seconds.items()} == {
        "write .b #1": [EXIT, "truncate .b #1", "write .b #1"],
        "rename b #1": [EXIT, "write .b #1"],
        "create .b #1": [],
    }
    left = {f"create .b #1 then {each}" for each in ("create .b #1", "write .b #1", EXIT)}
    every = {name_of(each) for each in recoveries.new_states()}
    assert every == left | {each.name for each in found}
    assert {name_of(each) for each in recoveries.new_states(every - left)} == left


def test_restarts_from_new_states_go_on_until_no_crash_leaves_another_one() -> None:
    """A job that counts its crashes up to three in a file, so that its restarts pass the states 1, 2 and 3."""
    usual = effects("write a", "exit")
    place = points(usual)[0]
    runs: Found = {(place,): usual}
    before: dict[Crashes, dict[str, str]] = {(place,): {"write a #1": "1", EXIT: "end"}}

    def recoveries() -> Recoveries:
        known = frozenset({"0", "end"})
        tried = known.union(before[at[:-1]][at[-1].name] for at in runs if len(at) > 1)
        return Recoveries(runs, usual, (), States(before, known, is_whole=True, tried=tried))

    assert recoveries().left() == {"1"}
    while new := recoveries().new_states():
        [crashes] = new
        assert crashes == (place,) * (len(runs) + 1)
        runs[crashes] = usual
        before[crashes] = {"write a #1": str(min(len(crashes), 3)), EXIT: "end"}
    assert len(runs) == 4
    assert recoveries().left() == set()


def test_a_second_crash_cuts_a_write_that_only_restarts_make() -> None:
    first, second, *_ = points(HEALTHY)

    def restart(*said: str, size: int) -> list[Effect]:
        done = effects(*said)
        return [replace(each, cuts={"": 4096}, call=replace(each.call, size=size, offset=0)) for each in done]

    usual = [replace(each, call=replace(each.call, size=9000, offset=0)) for each in HEALTHY]
    recoveries: Found = {
        (first,): restart("write a", "write undo", size=9000),  # the run without a crash writes as many bytes to `a`
        (second,): restart("write a", "write undo", size=8000),
    }
    again = {**recoveries, (points(HEALTHY)[2],): restart("write undo", size=8000)}  # one such write is enough
    for found in (recoveries, again):
        pairs = Recoveries(found, usual).torn()
        assert [name_of(pair) for pair in pairs] == [
            "write a #1 then within write undo #1",
            "rename b #1 then within write a #1",
            "rename b #1 then within write undo #1",
        ]
        assert set(pairs) <= set(Recoveries(found, usual).directed())
    third = {(first, second): restart("write undo", size=7000)}
    [cut] = Recoveries({**recoveries, **third}, usual).new_states({name_of(pair) for pair in pairs})
    assert name_of(cut) == "write a #1 then rename b #1 then within write undo #1"


def third(is_whole: bool, known: str = "") -> list[str]:
    """The runs with three crashes where the second restart, after `write a #1 then write undo #1`, makes more calls."""
    [first, *_] = points(HEALTHY)
    repair = effects("write undo", "write a", "exit")
    [second, *_] = points(repair)
    again = effects("unlink undo", "unlink undo", "write undo", "write a", "exit")
    before: dict[Crashes, dict[str, str]] = {
        (first,): {"write undo #1": "b"},
        (first, second): {"unlink undo #1": "b", "unlink undo #2": "c", "write undo #1": "d", "write a #1": "c"},
    }
    states = States(before, frozenset({"a", *known}), is_whole=is_whole)
    found = Recoveries({(first,): repair, (first, second): again}, HEALTHY, (), states).new_states()
    return list(map(name_of, found))


def test_a_third_crash_needs_a_state_from_which_no_run_recovered() -> None:
    start = "write a #1 then write undo #1 then "
    assert third(is_whole=True) == [f"{start}unlink undo #2", f"{start}write undo #1"]
    assert third(is_whole=True, known="cd") == []


def test_where_files_do_not_tell_a_third_crash_needs_a_kind_of_call_that_no_earlier_start_made() -> None:
    start = "write a #1 then write undo #1 then "
    assert third(is_whole=False, known="bcd") == [f"{start}unlink undo #1"]
    assert third(is_whole=False) == [
        f"{start}{each} #{turn}" for each, turn in [("unlink undo", 1), ("unlink undo", 2), ("write undo", 1)]
    ]


def test_a_third_crash_that_leaves_contents_never_seen_comes_first() -> None:
    """Two restarts make the same calls; the first leaves only files that other runs found, in a new combination."""
    [first, second, *_] = points(HEALTHY)
    repair = effects("write undo", "write a", "exit")
    [crash, *_] = points(repair)
    again = effects("unlink undo", "write a", "exit")
    parts = {"a": "a", "b": "b", "ab": "ab", "aa": "a", "new": "ax", "newer": "bx"}
    before: dict[Crashes, dict[str, str]] = {
        (first, crash): {"unlink undo #1": "ab", "write a #1": "aa", EXIT: "a"},
        (second, crash): {"unlink undo #1": "new", "write a #1": "b", EXIT: "newer"},
    }
    recoveries: Found = {(first,): repair, (second,): repair, **dict.fromkeys(before, again)}
    states = States(
        before, frozenset("ab"), is_whole=True, parts={state: frozenset(each) for state, each in parts.items()}
    )
    found = Recoveries(recoveries, HEALTHY, (), states).new_states()
    assert [[each.name for each in crashes[::2]] for crashes in found] == [
        ["rename b #1", EXIT],
        ["rename b #1", "unlink undo #1"],
        ["write a #1", "unlink undo #1"],
        ["write a #1", "write a #1"],
    ]


def test_what_differs_in_more_than_numbers_comes_before_a_counter() -> None:
    """Each start counts in a file; a new number is new contents, but only the other state is of another kind."""
    [first, *_] = points(HEALTHY)
    repair = effects("write count", "write a", "exit")
    before: dict[Crashes, dict[str, str]] = {(first,): {"write count #1": "n2", "write a #1": "n1 r", EXIT: "n1"}}
    parts = {"n1 r": {"n1", "r"}, "n1": {"n1"}, "n2": {"n2"}, "r": {"r"}}
    shapes = {"n1": "n", "n2": "n", "n1 r": "n r"}

    def found(shapes: Mapping[Hashable, Hashable]) -> list[str]:
        known = frozenset({"n1", "r"})
        states = States(
            before, known, is_whole=True, parts={each: frozenset(them) for each, them in parts.items()}, shapes=shapes
        )
        return [each[-1].name for each in Recoveries({(first,): repair}, HEALTHY, (), states).new_states()]

    assert found(shapes) == ["write a #1", "write count #1"]
    assert found({}) == ["write count #1", "write a #1"]


def test_plain_starts_follow_each_recovery_that_leaves_other_files_than_the_others() -> None:
    places = {each.name: each for each in points(HEALTHY)}
    left = {
        EXIT: "usual",
        "write a #1 then write a #2": "left",
        "write a #1": "left",
        "write a #2": "usual",
        "rename b #1": "left",
        "write a #2 then write a #3": "of two",
        "write a #3": "other",
    }
    before: dict[Crashes, dict[str, str]] = {
        tuple(places[each] for each in names.split(" then ")): {EXIT: state} for names, state in left.items()
    }
    before[places["rename b #2"],] = {}  # its recovery was killed as well, or nobody looked
    recoveries: Found = dict.fromkeys(before, HEALTHY)
    found = Recoveries(recoveries, HEALTHY, (), States(before, frozenset(), is_whole=True)).ended_otherwise()
    names = [" then ".join(each.name for each in crashes) for crashes in found]
    assert sorted(names[:2]) == ["rename b #1", "write a #3"]
    assert names[2:] == ["write a #2 then write a #3"]


def test_what_files_do_not_tell_keeps_the_other_reasons_for_a_second_crash() -> None:
    """Here crashes in two batches, although one crash leaves the same files: a server may hold something else."""
    assert by_states(is_whole=False) == ["rename b #3 then rename b #1", *by_states(is_whole=True)]


def test_a_file_that_is_cut_renamed_or_removed_is_no_log(tmp_path: Path) -> None:
    files = ("appended", "cut", "moved", "published", "linked", "read")
    namer = Namer([tmp_path])
    with FileReads([tmp_path]) as reads:
        for name in files:
            (tmp_path / name).write_text("1")
        (tmp_path / "read").read_text()
        asked = [call(CallKind.WRITE, str(tmp_path / name)) for name in files]
        asked += [
            call(CallKind.TRUNCATE, str(tmp_path / "cut")),
            call(CallKind.RENAME, str(tmp_path / "x"), str(tmp_path / "moved")),
            call(CallKind.RENAME, str(tmp_path / "published"), str(tmp_path / "part")),
            call(CallKind.LINK, str(tmp_path / "linked"), str(tmp_path / "part-2")),
        ]
        done = [each for each in map(namer.name, asked) if each is not None]
        taken = logs(done, reads)
        assert taken == {"appended"}


def test_a_pipeline_that_writes_nothing_but_a_log_was_not_seen() -> None:
    (said,) = doubts([], effects("write log", "exit"), {}, [STORE], {"log"})
    assert "no durable effect was seen" in said


@pytest.mark.parametrize(("replaces_rows", "early"), [(False, (-1,)), (True, ())])
def test_a_row_that_is_replaced_by_design_was_not_read_too_early(
    tmp_path: Path, replaces_rows: bool, early: tuple[int, ...]
) -> None:
    """A row that the run without a crash replaces, too, may be there in the middle; in the end it counts."""
    due = [{"day": 1, "sum": 7, "n": 2}]
    older = runs.Reading(0.0, 1, ({"day": 1, "sum": 3, "n": 1},), "crash 1")
    newer = runs.Reading(1.0, 2, (due[0],), "end")
    run = runs.PipelineRun("x", "x", tmp_path, readings=[older, newer])
    running = Campaign(pipeline_settings("true", read_command="cat"), None, silent)
    running._healthy = Healthy(run, (), expect(due, due), (), frozenset(), replaces_rows, ())
    job = Job("x", "x", Group.CRASH)
    verdict = running._judged(job, run).verdict
    assert verdict.aborted_read == early
    assert verdict.guarantee == "exactly-once"
    run.readings.append(older)
    late = running._judged(job, run).verdict
    assert late.guarantee == "none"


@pytest.mark.parametrize(
    ("first", "early"), [({"day": 1, "sum": 3, "n": 1}, ()), ({"day": 1, "sum": 5, "n": 2}, (-1,)), ({"day": 2}, (1,))]
)
def test_rows_that_new_input_replaces_were_right_before_it(
    tmp_path: Path, first: dict[str, int], early: tuple[int, ...]
) -> None:
    """A row that no run without a crash has is wrong all the same, and so is one that goes although it stays due."""
    usual = [{"day": 1, "sum": 3, "n": 1}]
    longer = [{"day": 1, "sum": 7, "n": 2}, {"day": 2}]
    readings = [runs.Reading(0.0, 1, (first,), "crash 1"), runs.Reading(1.0, 1, (), "end")]
    run = runs.PipelineRun("x", "x", tmp_path, readings=[*readings, runs.Reading(2.0, 2, tuple(longer), "end")])
    running = Campaign(pipeline_settings("true", read_command="cat"), None, silent)
    running._healthy = Healthy(run, (), expect(usual, usual), (), frozenset(), False, ())
    run.expectation, run.grown = expect(longer, longer), 2
    verdict = running._judged(Job("x", "x", Group.IDENTITY), run).verdict
    assert (verdict.aborted_read, verdict.guarantee) == (early, "exactly-once")


def test_a_command_without_effects_has_no_second_instance_and_a_large_batch_without_time_is_a_skip(
    tmp_path: Path,
) -> None:
    """As a command that never ends and writes elsewhere; its doubt must be said."""

    class Large(Further):
        def last_jobs(self) -> Iterator[Job]:
            yield Job("large", "a large batch", Group.LARGE)

    run = runs.PipelineRun("x", "x", tmp_path)
    harness = SimpleNamespace(
        endless=True, longer=[], logs=frozenset(), outside=SimpleNamespace(states={}), settings=None
    )
    running = Campaign(pipeline_settings("true", read_command="cat", seconds=1), harness, silent)
    running._healthy = Healthy(run, (), expect([1], [1]), ("no effect",), frozenset(), False, ())
    running.points = {each.name: each for each in points(())}
    assert [job.id for job in running.jobs()] == [EXIT]
    running.further, running.ledger.budget = Large(), -1.0
    [result] = running.run_all(running.last_jobs())
    assert (result.id, result.skipped) == ("large", True)
    assert running.ledger.planned == 1
