"""Agreement of the table of orders of writes with reality: the same order in the record, the same verdict after a kill.

Where each pipeline and each sink stands was written by hand from its source (data/pipelines/cells.toml); its order is
read from the effects that it was seen to have, and its verdicts come from the one judge, after real kills.
"""

import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import sink_pipeline
from cells import Cell, Kill, cells, in_the_table, kills, outside, weakest
from choosing import slow_but, variant_but
from crashtest_processes import left_over
from pipeline_records import names_of
from pipeline_runs import prepared
from pipeline_samples import PIPELINES, copied, expected, options

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order
from labkit.core.strategies import POINTS, Strategy
from labkit.crashtest.blackbox.campaign import Campaign, pipeline_campaign
from labkit.crashtest.blackbox.jobs import single_job
from labkit.crashtest.blackbox.points import Point
from labkit.crashtest.blackbox.seeing import Glance, changes
from labkit.crashtest.blackbox.settings import pipeline_settings
from labkit.crashtest.blackbox.writes import Orders, orders
from labkit.host import addresses
from labkit.runs.expected import expectations
from labkit.sim.orders.designs import reduced, why_not
from labkit.sim.orders.merging import WORLDS
from labkit.sim.orders.named import NAMED
from labkit.sim.orders.outcomes import find
from labkit.sim.writes import Design, Write
from labkit.teach.engine_pipelines import RECORDS, kept, pipelines

SAMPLES, ENGINES, SINKS = cells("sample"), cells("engine"), cells("sink")
STRUCK = cells("fault")
EVERY = {**SAMPLES, **STRUCK, **ENGINES, **SINKS}
FAST = ("wrong_marker_after", "right_move")
"""Those that every run of the tests kills; the others are slow."""


def read(cell: Cell, names: list[str]) -> Orders:
    return orders(names, cell.table, cell.ends, cell.idle)


# Who is in the table at all.


def test_every_sample_has_a_cell_or_says_why_not() -> None:
    assert {*SAMPLES, *outside("sample")} == set(expected())


def struck() -> dict[str, dict[str, str]]:
    """What is expected of each sample under a fault, by the name of its file."""
    return tomllib.loads((PIPELINES / "faults" / "expected.toml").read_text(encoding="utf-8"))


def test_every_sample_that_gets_no_answer_has_a_cell_or_says_why_not() -> None:
    lost = {name for name, each in struck().items() if each["fault"] == "lost-answer"}
    assert {*STRUCK, *outside("fault")} == lost


def test_every_pipeline_whose_effects_are_recorded_has_a_cell_or_says_why_not() -> None:
    recorded = {name for name, each in pipelines().items() if (RECORDS / f"{each.program.stem}.json").exists()}
    assert {*ENGINES, *outside("engine")} == recorded


def test_every_strategy_of_the_lab_has_a_cell_in_each_of_its_orders() -> None:
    assert {part_of(name)[::2] for name in SINKS} == set(POINTS)


def part_of(name: str) -> tuple[Strategy, str, Order]:
    strategy, store, order = name.split("-")
    return Strategy(strategy), store, Order(order)


# What was predicted of each, and what the table says.


@pytest.mark.parametrize("name", SAMPLES)
def test_the_table_says_of_a_sample_what_was_predicted_of_it(name: str) -> None:
    cell, predicted = SAMPLES[name], expected()[name]["guarantee"]
    found = weakest(cell.design)
    assert (found == predicted) is not bool(cell.beyond)


@pytest.mark.parametrize("name", STRUCK)
def test_the_table_says_of_a_sample_under_a_fault_what_was_predicted_of_it(name: str) -> None:
    """That a real fault shows this, and real kills alone nothing, is tested by test_faults.py."""
    cell = STRUCK[name]
    assert weakest(cell.design) == "exactly-once"
    claim = struck()[name]["claim"]
    found = find(cell.design, fault=cell.fault, crashes=0).guarantee
    assert claim.startswith("withstood" if found == "exactly-once" else f"at best {found},")


@pytest.mark.parametrize("name", ENGINES)
def test_the_table_says_of_an_engine_what_was_predicted_of_it(name: str) -> None:
    assert weakest(ENGINES[name].design) == pipelines()[name].guarantee


FAILPOINTS = [(name, point) for name, cell in SINKS.items() for point in cell.points]


@pytest.mark.parametrize(("name", "point"), FAILPOINTS)
def test_the_table_says_of_a_failpoint_what_real_spark_does(name: str, point: str) -> None:
    """The predictions of `labkit matrix`, with which tests compare real Spark."""
    strategy, store, order = part_of(name)
    cell = SINKS[name]
    places = {kill.place(cell.design): kill for kill in _all_kills(cell)}
    found = {
        (each.strategy, each.store, each.order, each.point): said.guarantee for each, said in expectations().items()
    }
    table = in_the_table(cell.design, places[cell.points[point]])
    assert table.guarantee == found[strategy, store, order, point]


def _all_kills(cell: Cell) -> Iterator[Kill]:
    for done in range(len(cell.design.steps) + 1):
        yield Kill(1, done)
    yield Kill(1, cell.design.place(Write.VISIBLE), inside=True)


@pytest.mark.parametrize("name", SINKS)
def test_every_failpoint_of_a_sink_lies_somewhere_in_its_cell(name: str) -> None:
    strategy, _, order = part_of(name)
    assert set(SINKS[name].points) == set(POINTS[strategy, order])


@pytest.mark.parametrize("name", EVERY)
def test_every_cell_is_a_design_that_is_searched_and_no_reader_knows_the_difference(name: str) -> None:
    design = EVERY[name].design
    cell = reduced(design)
    assert why_not(cell) == ""
    for world in WORLDS:
        assert find(cell, world).digest == find(design, world).digest


@pytest.mark.parametrize("name", [name for name, cell in EVERY.items() if cell.built])
def test_what_the_table_names_is_to_readers_what_was_seen(name: str) -> None:
    """The order of what is named was read in a source; that of the cell is read from a run."""
    cell = EVERY[name]
    for world in WORLDS:
        built = find(NAMED[cell.built].design, world)
        assert built.digest == find(cell.design, world).digest


def test_a_design_keeps_what_recovery_reads() -> None:
    kept = "plan > staged > decision > visible > marker > clean; append; from decision, skips marked, finishes decided"
    assert str(reduced(Design.parse(kept))) == kept
    dropped = Design.parse("plan > staged > visible > clean; append; from plan")
    assert reduced(dropped).order == "plan > visible"
    noted = Design.parse("visible+notice; transaction; from notice")
    assert str(reduced(noted)) == "visible+decision; transaction; from decision"
    assert reduced(reduced(noted)) == reduced(noted)


# What engines were seen to do, as it was kept.


@pytest.mark.parametrize("name", ENGINES)
def test_the_record_of_an_engine_has_the_order_of_its_cell(name: str) -> None:
    cell = ENGINES[name]
    found = read(cell, kept(name).effects)
    assert found.order == cell.design.steps
    assert len(found.steps) >= 2


@pytest.mark.parametrize("name", ENGINES)
def test_a_record_whose_writes_are_swapped_is_not_taken_for_the_cell(name: str) -> None:
    cell, names = ENGINES[name], kept(name).effects
    found = read(cell, names)
    for place in range(len(found.order) - 1):
        with suppress(InvalidInput):  # a record that is refused is not taken for it
            assert read(cell, swapped(names, found, place)).order != cell.design.steps


def swapped(names: list[str], found: Orders, place: int) -> list[str]:
    """The record as if each step made two neighbouring atomic sets the other way round."""
    for step in found.steps:
        first, second = step[place].effects, step[place + 1].effects
        left = [name for name in names if name not in second]
        before = left.index(first[0])
        names = [*left[:before], *second, *left[before:]]
    return names


@pytest.mark.parametrize("name", ENGINES)
def test_a_kill_of_an_engine_gives_the_verdict_of_the_table(name: str) -> None:
    """That the telling kill gives this verdict is measured by test_engines.py and `make systems`; others were by
    hand.
    """
    cell, pipeline = ENGINES[name], pipelines()[name]
    found = read(cell, kept(name).effects)
    telling = dict.fromkeys(pipeline.shown_by, pipeline.guarantee)
    differing = {}
    for point, measured in {**cell.measured, **telling}.items():
        place = found.place(point)
        assert place is not None, f"{point} makes no write"
        kill = Kill(*place)
        if measured != in_the_table(cell.design, kill).guarantee:
            differing[kill.place(cell.design)] = measured
    said = {place: why.partition(":")[0] for place, why in cell.differs.items()}
    assert differing == said


@pytest.mark.parametrize("name", ENGINES)
def test_a_record_says_how_it_was_made_and_of_what(name: str) -> None:
    record = kept(name)
    assert record.command == f"python tools/pipelines.py {record.name} --record"
    assert all(" " in each for each in record.versions)
    assert "127.0.0.1" not in str(record.effects)
    assert "/tmp/" not in str(record.effects)


HERE = [name for name, each in pipelines().items() if each.is_ours and not each.pipeline]
"""Pipelines for which nothing has to be installed, each program once."""
LIVE = [name for name in HERE if name.startswith("spark_")][::3]
"""Every third one of Spark; those of Kafka are killed at every place of their cell below."""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("watched_calls")
@pytest.mark.parametrize("name", variant_but(["spark_kafka_sink"], LIVE))
def test_a_live_run_of_an_engine_has_the_order_of_its_cell(name: str, tmp_path: Path) -> None:
    with prepared(pipelines()[name]) as chosen:
        assert chosen.effects(tmp_path / "seen") == 0
    cell = ENGINES[name]
    found = read(cell, names_of(tmp_path / "seen"))
    assert found.order == cell.design.steps


# Real kills, place by place.

KAFKA = [name for name in HERE if name.startswith("kafka_")]
"""Pipelines that start within a second, so each place of their cell can be tried."""


@pytest.mark.slow
@pytest.mark.usefixtures("java", "watched_calls")
@pytest.mark.parametrize("name", variant_but(["kafka_commit_first"], KAFKA))
def test_real_kills_of_a_kafka_client_give_the_verdicts_of_its_cell(name: str) -> None:
    cell = ENGINES[name]
    found = read(cell, kept(name).effects)
    places = {point: kill for kill, point in kills(cell.design, found)}
    with prepared(pipelines()[name]) as chosen:
        report = chosen.report([f"--only={point}" for point in places])
        runs = {run["id"]: run for run in report["runs"]}
        for point, kill in places.items():
            run = runs[chosen.named(point)]
            assert not run["unknown"], run
            table = in_the_table(cell.design, kill, len(found.steps))
            assert run["guarantee"] == table.guarantee, kill.place(cell.design)


def killed(cell: Cell, running: Campaign) -> None:
    """Compares the order of a run with the cell, then each kill between two writes with the table's verdict."""
    first = running.healthy()
    assert not first.unknown
    names = [each.name for each in running._seen.effects]
    found = read(cell, names)
    assert found.order == cell.design.steps
    assert_seen(names, found, running._seen.glances)
    verdicts = {}
    for kill, point in kills(cell.design, found, running._seen.showing):
        result = running.run(single_job(running.points.get(point, Point(point, 0))))
        assert not result.unknown, f"{point}: {result.unknown}"
        table = in_the_table(cell.design, kill, len(found.steps)).guarantee
        verdicts[kill.place(cell.design)] = (result.guarantee, table)
    said = {place: why.partition(":")[0] for place, why in cell.differs.items()}
    differing = {place: real for place, (real, table) in verdicts.items() if real != table}
    assert differing == said, verdicts


def assert_seen(names: list[str], found: Orders, glances: Sequence[Glance]) -> None:
    """Rows were seen to change by visible output alone: else an effect has got the name of a write that it is not.

    A reader that was locked out of the store saw the change some effects later.
    """
    visible = {name for step in found.steps for made in step for name in made.effects if Write.VISIBLE in made.writes}
    seen = [names[each.earlier.happened : each.later.happened] for each in changes(glances)]
    assert seen
    for between in seen:
        assert visible & set(between), f"rows changed by {between}"


@pytest.fixture
def _watched(watched_calls: None) -> Iterator[None]:
    yield
    assert left_over() == []


def slow(cells: dict[str, Cell]) -> list:
    """The fast ones, every fourth of the others, and those that undo: other tests kill all of them, if not at each
    place.
    """
    fast = [name for name in FAST if name in cells]
    undoing = [name for name, cell in cells.items() if cell.design.recovery.undoes]
    others = [name for name in cells if name not in (*fast, *undoing)]
    chosen = [*others[::4], *undoing]
    return slow_but(fast, chosen, {"two_phase-postgres-engine"} & {*chosen})


@pytest.mark.usefixtures("_watched")
@pytest.mark.parametrize("name", slow(SAMPLES))
def test_real_kills_of_a_sample_give_the_verdicts_of_its_cell(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(tmp_path, monkeypatch)
    more = options(name) | {"power_cut": False, "checkpoint": None}
    settings = pipeline_settings(expected()[name]["command"], **more)
    with pipeline_campaign(settings) as running:
        killed(SAMPLES[name], running)


@pytest.mark.usefixtures("_watched")
@pytest.mark.parametrize("name", slow(SINKS))
def test_real_kills_of_a_sink_of_the_lab_give_the_verdicts_of_its_cell(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.chdir(tmp_path)
    if part_of(name)[1] == "postgres":
        request.getfixturevalue("postgres")
    else:
        monkeypatch.delenv(addresses.POSTGRES, raising=False)
    sink_pipeline.reset()
    file = sink_pipeline.__file__
    settings = pipeline_settings(
        shlex.join([sys.executable, file, *part_of(name)]),
        reader=f"{file}:read",
        expected=f"{file}:expected",
        watch=["store", "checkpoint"],
        limit=60,
        seconds=900,
        quick=True,
    )
    with pipeline_campaign(settings) as running:
        killed(SINKS[name], running)
