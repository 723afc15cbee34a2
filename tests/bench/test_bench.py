"""The arithmetic of the measurements, on figures that were made up, and the command `python -m bench`."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner
from waiting import until

import labkit
from bench import explore, player, postgres, spark_search, start, totals
from bench.__main__ import app
from bench.postgres import Spent
from bench.registry import MEASUREMENTS, select
from bench.rows import by_key, median, percentile, ratio, spread
from bench.totals import Taken
from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.failpoints import Order
from labkit.core.records import Observation
from labkit.core.strategies import Strategy
from labkit.runs.layout import RunFolder
from labkit.runs.run import Run
from labkit.runs.scenario import plan
from labkit.sim.explore import explore as search
from labkit.sim.trace import make
from labkit.stores import open_store

ROOT = Path(__file__).parents[2]


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


def test_the_traces_of_the_player_are_as_long_as_the_promise():
    """300 steps of the largest scenes: fewer would make the figures smaller and the promise empty."""
    lengths = {name: len(trace.actions) for name, trace in player.traces().items()}
    assert max(lengths.values()) == 300
    assert len(lengths) == 3


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
    files, sqlite = (rows["two_phase (engine) on files"], rows["two_phase (engine) on sqlite"])
    assert (files["pre-commit + commit - append's write, ms"], files["at most 10 ms more"]) == (3.0, True)
    assert (sqlite["pre-commit + commit - append's write, ms"], sqlite["at most 10 ms more"]) == (11.0, False)
    assert (files["whole sink - append's, ms"], sqlite["whole sink - append's, ms"]) == (6.0, 21.0)
    assert {row["words/s"] for row in rows.values()} == {500}


def test_in_a_server_the_whole_job_is_compared_with_one_plain_transaction_of_its_round():
    def runs(*seconds: float) -> list[Taken]:
        return [Taken(each, [{"write": 0.01, "pre_commit": 0.0, "commit": 0.01}]) for each in seconds]

    taken = {
        "append on postgres": runs(1.0, 1.0, 1.0),
        "batch_marker on postgres": runs(2.0, 4.0, 3.0),
        "two_phase (engine) on postgres": runs(2.0, 4.1, 3.2),
        "two_phase (decision) on postgres": runs(2.5, 4.0, 4.0),
    }
    rows = by_key(totals.table_of(taken, 1_000), "totals")
    engine, decision = (rows["two_phase (engine) on postgres"], rows["two_phase (decision) on postgres"])
    assert (engine["speed of batch_marker's"], engine["at least 0.97"]) == (0.976, True)
    assert (decision["speed of batch_marker's"], decision["at least 0.97"]) == (0.8, False)
    assert "at most 10 ms more" not in engine
    assert "at least 0.97" not in rows["batch_marker on postgres"]


def test_what_two_phase_costs_is_compared_with_the_plain_transaction_of_the_same_turn():
    taken = {
        postgres.PLAIN: [Spent(0.002, 0.001, 0.0), Spent(0.050, 0.001, 0.01), Spent(0.003, 0.001, 0.02)],
        postgres.TWO_PHASE: [Spent(0.006, 0.002, 0.01), Spent(0.060, 0.002, 0.01), Spent(0.006, 0.005, 0.01)],
    }
    plain, two_phase = postgres.table_of(100, taken)
    assert (two_phase["ms"], two_phase["more than a plain transaction, ms"]) == (6.0, 4.0)
    assert (two_phase["fastest ms"], two_phase["more of the fastest, ms"]) == (6.0, 4.0)
    assert (two_phase["CPU ms here"], two_phase["CPU ms in the server"]) == (3.0, 10.0)
    assert two_phase["at most 5 ms more"] is True
    assert (plain["more than a plain transaction, ms"], "at most 5 ms more" in plain) == (0.0, False)
    taken[postgres.TWO_PHASE] = [Spent(one.clock + 0.002, 0, 0) for one in taken[postgres.TWO_PHASE]]
    assert postgres.table_of(100, taken)[1]["at most 5 ms more"] is False


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"stores": ["postgre"]}, "--store postgre: unknown; did you mean 'postgres'"),
        ({"stores": ["kafka"]}, "--store kafka: unknown"),
        ({"only": ["explor"]}, "--only explor: unknown; did you mean 'explore'"),
        ({"words": 3}, "--words 3: choose 1,000 to"),
        ({"states": 3}, "--states 3: choose 1,000 to"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_runs(given: dict[str, object], said: str):
    with pytest.raises(InvalidInput, match=said):
        select(**{"only": ["totals"], **given})


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
    with pytest.raises(JobFailed, match=r"append on files wrote a wrong table"):
        totals.read(run, {"hello": 2})
    run.error = JobFailed("the driver ended")
    with pytest.raises(JobFailed, match="the driver ended"):
        totals.read(run, {"hello": 1})


@pytest.mark.slow
def test_a_search_is_measured_with_its_ratio_and_its_memory(monkeypatch: pytest.MonkeyPatch):
    small = {name: (name, {}) for name in ("two_phase_commit", "pipeline")}
    monkeypatch.setattr(explore, "EXPLORED", small)
    *explored, step = explore.measure(3)
    assert [row["explored"] for row in explored] == list(small)
    for row in explored:
        assert row["unique states/s"] > 1_000
        assert 0.3 < row["time vs bare search"] < 20
        assert 0 < row["speed on two cores"] < 2.5
        assert 30 < row["bytes/state"] < 20_000
    assert step["microseconds"] < 1_000


def test_the_bare_search_sees_the_same_states():
    model = make("pipeline", {"crashes": 2})
    assert explore.bare(model) == search(model).unique_states


def test_a_search_on_spark_stands_beside_one_core():
    found = search(make("pipeline", {}))
    states, steps = found.unique_states, found.generated_states
    on_spark = [spark_search.Spent(found, 9.0, each * steps / 1e6, 700) for each in (4, 5)]
    alone = [spark_search.Spent(found, 9.0, each * steps / 1e6, 90) for each in (2, 5)]
    row = spark_search.row(on_spark, alone)
    assert (row["unique states"], row["generated states"]) == (states, steps)
    assert (row["µs/step"], row["its µs/step"], row["step vs one core"]) == (*(4.5, 3.5), 1.5)
    assert row["µs/state"] == round(4.5 * steps / states, 2)
    assert row["MB in all"] == 700


def test_what_a_process_below_uses_counts_also_when_it_has_ended():
    with spark_search.watched() as watch:
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        until(lambda: watch.processor > 0.3, "a process to be seen", seconds=30)
        busy.kill()
        busy.wait()
        watch.look()
        assert watch.processor > 0.3
    assert watch.bytes > psutil.Process().memory_full_info().pss


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs `python -m bench` in the checkout."""
    return subprocess.run(
        [sys.executable, "-m", "bench", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_help_names_every_measurement_and_says_what_it_measures():
    told = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"})
    for name, measurement in MEASUREMENTS.items():
        assert measurement.title
        assert f"  {name:9} {measurement.title}" in told.stdout


@pytest.mark.slow
def test_a_measurement_is_printed_as_one_object_with_its_machine():
    told = command("--only", "start", "--rounds", "1", "--json")
    assert told.returncode == 0, told.stderr
    printed = json.loads(told.stdout)
    assert set(printed) == {"machine", "start"}
    assert printed["machine"]["labkit"] == labkit.__version__
    assert [row["start"] for row in printed["start"]] == list(start.LIMITS)
    assert printed["start"][0]["heavy modules loaded"] == "none"


@pytest.mark.slow
def test_a_mistake_gets_one_sentence():
    told = command("--rounds", "0")
    assert (told.returncode, told.stderr) == (InvalidInput.exit_code, "bench: --rounds 0: choose 1 to 100.\n")


def test_make_hands_its_variables_over():
    told = subprocess.run(
        ["make", "-n", "bench", "ONLY=crash explore", "ROUNDS=3", "JSON=1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = (each for each in told.stdout.splitlines() if "-m bench" in each)
    words = line.partition("-m bench ")[2].split()
    assert words == ["--only", "crash", "--only", "explore", "--rounds", "3", "--json"]
