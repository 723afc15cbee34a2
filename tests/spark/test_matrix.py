"""Every sink at every failpoint on real Spark, against the predictions; the heart of the lab."""

import pytest
from choosing import variant_but
from conducted import Outcomes, conducted

from labkit.cli.matrix import scenario
from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import Strategy
from labkit.runs.expected import Cell, compared, expectations
from labkit.runs.outcome import Outcome

pytestmark = pytest.mark.spark

CELLS = expectations()


SERVERS = ("postgres", "kafka")
LONGEST = (Strategy.TWO_PHASE, Order.DECISION)
"""The sink that passes the most points."""
QUICK_POINT = FailPoint.MID_COMMIT
"""Where `make test` kills that sink, too."""


def is_slow(cell: Cell) -> bool:
    """Whether `make test` leaves a run to `make test-all`: without Spark every point is reached there on every store.

    With Spark every sink is killed once between pre-commit and commit: those in files that also run in SQLite by turns.
    """
    sink = (cell.strategy, cell.order)
    if sink == LONGEST and cell.point is QUICK_POINT:
        return cell.store != "sqlite"
    sinks = list(dict.fromkeys((each.strategy, each.order) for each in CELLS if each.store == "files"))
    store = "files" if sink in sinks and sinks.index(sink) % 2 else "sqlite"
    return cell.point is not FailPoint.AFTER_PRE_COMMIT or cell.store != store


def moment(cell: Cell) -> tuple[Strategy, Order, FailPoint]:
    return cell.strategy, cell.order, cell.point


def in_turn(cell: Cell) -> bool:
    """Whether a slow run is made: each sink is killed at each point once, on one store after the other.

    Between pre-commit and commit it is killed on both servers. `labkit matrix --engine both` runs every cell.
    """
    if cell.point is FailPoint.AFTER_PRE_COMMIT:
        return cell.store in SERVERS
    if moment(cell) in map(moment, FAST):
        return False
    stores = [each.store for each in CELLS if moment(each) == moment(cell)]
    turn = list(dict.fromkeys(map(moment, CELLS))).index(moment(cell))
    return cell.store == stores[turn % len(stores)]


FAST = [cell for cell in CELLS if not is_slow(cell)]
SLOW = [cell for cell in CELLS if is_slow(cell) and in_turn(cell)]
ON_SERVERS = [cell for cell in SLOW if cell.point is FailPoint.AFTER_PRE_COMMIT]
OTHERS = [cell for cell in SLOW if cell not in ON_SERVERS]


def check(cell: Cell, outcome: Outcome) -> None:
    """The verdict is the predicted one, and the crash was a crash."""
    [crash] = outcome.crashes
    assert (crash["point"], crash["batch"], crash["signal"]) == (cell.point, 0, 9)
    assert crash["offset_log"] == [0]
    assert crash["commit_log"] == ([0] if decided_by(cell) else [])
    assert len(crash["killed"]) > 3, "a JVM, its driver and its Python daemons"
    assert compared(outcome.to_json()) == CELLS[cell].compared(), CELLS[cell].reason


def decided_by(cell: Cell) -> bool:
    """Whether commits/0 must be there when the point is reached."""
    behind = (FailPoint.MID_COMMIT, FailPoint.BEFORE_CONFIRM, FailPoint.AFTER_COMMIT)
    return cell.point is FailPoint.AFTER_COMMIT_LOG or (cell.order is Order.DECISION and cell.point in behind)


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Every cell once, without what is slow."""
    return conducted({cell: scenario(cell) for cell in FAST}, tmp_path_factory.mktemp("matrix"))


@pytest.fixture(scope="module")
def slow_grid(
    postgres: str, kafka_address: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Outcomes:
    """The slow cells that this session tests."""
    here = test_real_spark_gives_it_on_a_server_and_at_every_point
    wanted = {item.callspec.params["cell"] for item in request.session.items if getattr(item, "function", None) is here}
    cells = [cell for cell in SLOW if cell in wanted]
    return conducted({cell: scenario(cell) for cell in cells}, tmp_path_factory.mktemp("servers"))


@pytest.mark.parametrize("cell", FAST, ids=str)
def test_real_spark_gives_what_was_predicted(cell: Cell, grid: Outcomes):
    check(cell, grid[cell])


@pytest.mark.slow
@pytest.mark.parametrize("cell", variant_but([*ON_SERVERS, *OTHERS[::2]], SLOW), ids=str)
def test_real_spark_gives_it_on_a_server_and_at_every_point(cell: Cell, slow_grid: Outcomes):
    check(cell, slow_grid[cell])


def test_hello_and_world_are_in_different_partitions_of_three(grid: Outcomes):
    """The participants and their order, on which the predictions stand."""
    wal = grid[Cell("files", Strategy.WAL, Order.DECISION, FailPoint.AFTER_PRE_COMMIT)]
    assert {"labkit/wal/0-1.log", "labkit/wal/0-2.log"} <= set(wal.crashes[0]["files"])
    assert "labkit/wal/0-0.log" not in wal.crashes[0]["files"]


def test_a_run_leaves_its_folder_and_nothing_else(grid: Outcomes):
    """The driver's temporary files are gone, and what is kept is what the design says."""
    outcome = grid[Cell("sqlite", Strategy.TWO_PHASE, Order.DECISION, FailPoint.MID_COMMIT)]
    kept = (
        "checkpoint store config.json evidence.json history.jsonl moments.jsonl verdict.json report.html spacetime.svg "
        "driver-1.log driver-2.log reached-1.json reached-1.turns"
    )
    assert {path.name for path in outcome.folder.iterdir()} == set(kept.split())
