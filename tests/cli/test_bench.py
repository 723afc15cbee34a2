"""The benchmark's own arithmetic, on figures that were made up; nothing is measured here but three small things."""

import json
from collections import Counter
from pathlib import Path

import pytest

from labkit.cli import bench
from labkit.cli.bench import crash, player, start, totals
from labkit.cli.bench.crash import STOCK, Times
from labkit.cli.bench.machine import machine
from labkit.cli.bench.rows import by_key, median, percentile, ratio, spread
from labkit.cli.bench.totals import Taken
from labkit.errors import JobFailed
from labkit.failpoints import Order, Strategy
from labkit.records import Observation
from labkit.scenario import plan
from labkit.spark import stopwatch
from labkit.spark.layout import RunFolder
from labkit.spark.run import Run
from labkit.stores import open_store


def test_a_ratio_is_taken_within_each_round_and_not_between_medians():
    assert ratio([1, 30, 5], [2, 10, 5]) == 1.0
    assert median([1, 30, 5]) / median([2, 10, 5]) == 1.0
    assert ratio([1, 30, 6], [4, 10, 2]) == 3.0
    assert median([1, 30, 6]) / median([4, 10, 2]) == 1.5


def test_every_round_has_both_sides():
    with pytest.raises(ValueError, match="zip"):
        ratio([1, 2], [1])


def test_medians_are_rounded_and_ranges_are_told():
    assert median([1.23456, 9, 0]) == 1.23
    assert spread([2.5, 0.254, 1]) == "0.25-2.50"


def test_a_percentile_is_a_value_that_was_measured_or_lies_between_two():
    assert percentile([5.0], 95) == 5.0
    assert percentile(list(range(101)), 95) == 95.0
    assert percentile([1, 1, 1, 1, 100], 95) == 80.2


def test_everything_that_help_names_can_be_measured():
    assert {"start", "explore", "player", "live", "crash", "totals"} <= set(bench.MEASUREMENTS)


def test_the_traces_of_the_player_are_as_long_as_the_promise():
    """300 steps of the largest scenes: fewer would make the figures smaller and the promise empty."""
    lengths = {name: len(trace.actions) for name, trace in player.traces().items()}
    assert max(lengths.values()) == 300
    assert len(lengths) == 3


def test_a_crash_is_compared_with_the_stock_settings_of_its_round():
    taken = {"labkit": [Times(1, 2, 10), Times(3, 4, 12)], STOCK: [Times(5, 8, 40), Times(5, 8, 24)]}
    rows = by_key(crash.table_of(taken), "crash")
    assert rows["labkit"]["start to verdict s"] == 11
    assert rows["labkit"]["start to verdict, of stock"] == 0.38
    assert rows["labkit"]["SIGKILL to committed s"] == 3
    assert rows["labkit"]["SIGKILL to committed, of stock"] == 0.38
    assert rows[STOCK]["start to verdict, of stock"] == 1.0


def test_what_a_commit_costs_is_what_it_takes_beyond_appends_write():
    def runs(write: float, pre_commit: float, commit: float) -> list[Taken]:
        batch = {"collect": 1.0, "write": write, "pre_commit": pre_commit, "commit": commit}
        return [Taken(2.0, [batch, batch, {"write": 9.0}])]

    taken = {
        "append on files": runs(0.004, 0, 0),
        "two_phase (engine) on files": runs(0.003, 0.005, 0.002),
        "append on sqlite": runs(0.010, 0, 0),
        "two_phase (engine) on sqlite": runs(0.010, 0.015, 0.006),
    }
    rows = by_key(totals.table_of(taken, 1_000), "totals")
    files, sqlite = rows["two_phase (engine) on files"], rows["two_phase (engine) on sqlite"]
    assert (files["pre-commit + commit - append's write, ms"], files["at most 10 ms more"]) == (3.0, True)
    assert (sqlite["pre-commit + commit - append's write, ms"], sqlite["at most 10 ms more"]) == (11.0, False)
    assert (files["whole sink - append's, ms"], sqlite["whole sink - append's, ms"]) == (6.0, 21.0)
    assert {row["words/s"] for row in rows.values()} == {500}


def test_the_words_are_seeded_and_counted_as_they_are_written(tmp_path: Path):
    written = totals.write_words(tmp_path / "a", 2_500)
    totals.write_words(tmp_path / "b", 2_500)
    text = (tmp_path / "a").read_text()
    assert text == (tmp_path / "b").read_text()
    assert Counter(text.split()) == written
    assert {len(line.split()) for line in text.splitlines()} == {10}
    assert written["w0"] > written["w9"] > written["w99"]


def test_every_strategy_runs_on_every_store_that_can_carry_it(tmp_path: Path):
    scenarios = list(totals.every(tmp_path / "words", 1_000))
    assert {scenario.strategy for scenario in scenarios} == set(Strategy)
    assert {scenario.records_per_batch for scenario in scenarios} == {10}
    assert len({totals.name(scenario) for scenario in scenarios}) == len(scenarios)
    orders = {(s.store, s.order) for s in scenarios if s.strategy is Strategy.TWO_PHASE}
    assert orders == {(store, order) for store in totals.STORES for order in (Order.ENGINE, Order.DECISION)}


def test_times_of_a_wrong_table_count_for_nothing(tmp_path: Path):
    scenario = plan(job="totals")
    run = Run(scenario, RunFolder(tmp_path))
    place = run.folder.store(scenario.store)
    place.parent.mkdir(parents=True)
    store = open_store(scenario.store, place)
    store.append(Observation(0, "hello", 1, 0, 1))
    store.close()
    with pytest.raises(JobFailed, match=r"append on files left a wrong table"):
        totals.read(run, {"hello": 2})
    run.error = JobFailed("the driver ended by itself")
    with pytest.raises(JobFailed, match="ended by itself"):
        totals.read(run, {"hello": 1})


def test_a_stopwatch_writes_only_where_somebody_asked(tmp_path: Path):
    watch = stopwatch.Stopwatch(tmp_path, 0)
    with watch.phase("write"):
        pass
    watch.keep()
    assert list(tmp_path.iterdir()) == []
    stopwatch.ask(tmp_path)
    watch.seconds.update({"write": 0.5})
    watch.move(0.2, out_of="write", to="pre_commit")
    watch.keep()
    late = stopwatch.Stopwatch(tmp_path, 0)
    late.seconds["commit"] = 0.1
    late.keep()
    assert stopwatch.read(tmp_path) == {0: {"write": 0.3, "pre_commit": 0.2, "commit": 0.1}}


def test_the_machine_is_described():
    known = machine()
    assert {"processor", "cores", "memory GB", "system", "Python", "Java", "PySpark", "PyFlink"} <= set(known)
    assert all(value != "" for value in known.values())


def test_importing_the_package_is_quick_and_loads_nothing_heavy(capsys: pytest.CaptureFixture[str]):
    assert bench.run_bench(["start"], 1, as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["start"] for row in found["start"]] == list(start.LIMITS)
    assert found["start"][0]["heavy modules loaded"] == "none"
    assert found["machine"]["labkit"] == "0.1.0"
