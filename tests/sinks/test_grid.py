"""Every sink at every failpoint without Spark, against the predictions; and broken sinks, which must be caught."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from choosing import slow_but
from plain_engine import NeverReached, PlainEngine, crashed

from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.failpoints import RECOVERY_POINTS, Crash, FailPoint, Order
from labkit.core.judge import Guarantee
from labkit.core.strategies import Strategy, orders
from labkit.runs.expected import Cell, compared, expectations, grid
from labkit.sinks import SINKS, coordinator, two_phase, wal
from labkit.sinks.coordinator import DecisionOrder, HandleLog
from labkit.stores import CAPABILITIES, STORES, capabilities, open_store
from labkit.stores.contract import Handle

pytestmark = pytest.mark.usefixtures("every_store")

CELLS = expectations()
FAST = [cell for cell in CELLS if cell.point is FailPoint.AFTER_PRE_COMMIT]
FAST += [cell for cell in CELLS if cell.store != "kafka" and cell not in FAST][::2]
"""The cells for every run of the tests: the middle of the commit, and of the others on quick stores every second."""


def given(cell: Cell, folder: Path) -> dict:
    return compared(crashed(folder, cell.strategy, cell.store, cell.order, [cell.point]).verdict().to_json())


def test_there_is_a_prediction_for_every_cell_of_the_grid_and_for_no_other():
    able = {
        store: frozenset(strategy for strategy in Strategy if strategy.facts.needs in capabilities(store))
        for store in STORES
    }
    assert set(grid(able)) == set(CELLS)


@pytest.mark.parametrize("cell", slow_but(FAST, CELLS), ids=str)
def test_a_crash_gives_what_was_predicted(cell: Cell, tmp_path: Path):
    assert given(cell, tmp_path) == CELLS[cell].compared()


def test_every_sink_asks_for_a_capability_that_some_store_has():
    asked = {strategy: strategy.facts.needs for strategy in Strategy}
    assert set(asked.values()) <= CAPABILITIES.keys()
    assert all(any(needed in capabilities(store) for store in STORES) for needed in asked.values())


@pytest.mark.parametrize("store", slow_but([store for store in STORES if store != "kafka"], STORES))
@pytest.mark.parametrize("strategy", Strategy)
def test_without_a_crash_everything_is_exactly_once(strategy: Strategy, store: str, tmp_path: Path):
    if strategy.facts.needs not in capabilities(store):
        with pytest.raises(InvalidInput, match="use --store sqlite"):
            PlainEngine(tmp_path, strategy, store, Order.NONE)._live(None)
        return
    for order in orders(strategy):
        verdict = crashed(tmp_path / order, strategy, store, order, []).verdict()
        assert (verdict.guarantee, verdict.rows, verdict.regression) == (
            Guarantee.EXACTLY_ONCE,
            2 if strategy.facts.replaces else 3,
            (),
        )


EVERY_STORE = [pytest.param(kind, marks=pytest.mark.slow if kind in ("postgres", "kafka") else ()) for kind in STORES]


@pytest.mark.parametrize("again", RECOVERY_POINTS)
@pytest.mark.parametrize("store", EVERY_STORE)
@pytest.mark.parametrize("point", [FailPoint.AFTER_PRE_COMMIT, FailPoint.AFTER_HANDLES, FailPoint.AFTER_COMMIT_LOG])
def test_two_phase_survives_a_second_crash_in_recovery(point: FailPoint, store: str, again: FailPoint, tmp_path: Path):
    verdict = crashed(tmp_path, Strategy.TWO_PHASE, store, Order.DECISION, [point, again]).verdict()
    assert (verdict.guarantee, verdict.rows) == (Guarantee.EXACTLY_ONCE, 3)


def test_the_log_flushes_again_what_an_interrupted_recovery_had_flushed(tmp_path: Path):
    points = [FailPoint.AFTER_COMMIT_LOG, FailPoint.MID_RESOLVE]
    verdict = crashed(tmp_path, Strategy.WAL, "files", Order.DECISION, points).verdict()
    assert (verdict.guarantee, verdict.duplicate) == (Guarantee.AT_LEAST_ONCE, (1,))


@pytest.mark.parametrize("strategy", [Strategy.WAL, Strategy.TWO_PHASE])
def test_an_end_without_the_last_notification_leaves_the_last_batch_pending(strategy: Strategy, tmp_path: Path):
    """The sweep at a clean end is no courtesy; and the next driver makes up for a notification that was lost."""
    engine = PlainEngine(tmp_path, strategy, "files", Order.DECISION, notified=False)
    assert engine.drive() == 0
    verdict = engine.verdict()
    assert verdict.rows == 0
    assert verdict.guarantee is (Guarantee.UNKNOWN if strategy is Strategy.TWO_PHASE else Guarantee.AT_MOST_ONCE)
    assert verdict.unseen == ((0, 1, 2) if strategy is Strategy.TWO_PHASE else ())
    engine.drive()
    assert (engine.verdict().guarantee, engine.verdict().rows) == (Guarantee.EXACTLY_ONCE, 3)


def test_recovery_leaves_the_transactions_of_another_query_alone(tmp_path: Path):
    engine = PlainEngine(tmp_path, Strategy.TWO_PHASE, "files", Order.DECISION)
    engine.drive(Crash(FailPoint.AFTER_PRE_COMMIT))
    foreign = Handle("plain_other", 0, 1, 1, 1)
    store = open_store("files", engine.location)
    store.begin(foreign).prepare()
    engine.drive()
    assert store.prepared("plain_other") == [foreign]
    assert store.prepared("plain") == []
    store.close()


def test_a_damaged_handle_file_stops_recovery_with_its_name(tmp_path: Path):
    engine = PlainEngine(tmp_path, Strategy.TWO_PHASE, "files", Order.DECISION)
    engine.drive(Crash(FailPoint.AFTER_COMMIT_LOG))
    (tmp_path / "log" / "handles" / "0.json").write_text('[{"handle"')
    with pytest.raises(JobFailed, match=r"0\.json: .*batch 0"):
        engine._live(None)


def test_a_decided_log_that_is_gone_is_reported_and_not_passed_over(tmp_path: Path):
    engine = PlainEngine(tmp_path, Strategy.WAL, "files", Order.DECISION)
    engine.drive(Crash(FailPoint.AFTER_COMMIT_LOG))
    (tmp_path / "log" / "wal" / "0-1.log").unlink()
    with pytest.raises(JobFailed, match=r"0-1\.log"):
        engine._live(None)


def cell(strategy: Strategy, order: Order, point: FailPoint, store: str = "files") -> Cell:
    return Cell(store, strategy, order, point)


def commit_before_the_decision(patch: pytest.MonkeyPatch) -> Cell:
    patch.setattr(DecisionOrder, "_voted", coordinator.EngineOrder._voted)
    return cell(Strategy.TWO_PHASE, Order.DECISION, FailPoint.AFTER_COMMIT)


def skip_the_handle_file(patch: pytest.MonkeyPatch) -> Cell:
    patch.setattr(HandleLog, "write", lambda *_: None)
    return cell(Strategy.TWO_PHASE, Order.DECISION, FailPoint.AFTER_HANDLES)


def drop_the_confirmation(patch: pytest.MonkeyPatch) -> Cell:
    patch.setattr(wal.WriteAheadLogSink, "_confirm", lambda *_: None)
    return cell(Strategy.WAL, Order.ENGINE, FailPoint.AFTER_COMMIT)


def abort_what_was_decided(patch: pytest.MonkeyPatch) -> Cell:
    keep_nothing = two_phase.TwoPhaseSink.resolutions
    patch.setattr(two_phase.TwoPhaseSink, "resolutions", lambda sink, _: keep_nothing(sink, []))
    return cell(Strategy.TWO_PHASE, Order.DECISION, FailPoint.AFTER_COMMIT_LOG)


def forget_orphans(patch: pytest.MonkeyPatch) -> Cell:
    patch.setattr(two_phase.TwoPhaseSink, "resolutions", lambda *_: [])
    return cell(Strategy.TWO_PHASE, Order.DECISION, FailPoint.AFTER_COMMIT_LOG)


def marker_outside_the_transaction(patch: pytest.MonkeyPatch) -> Cell:
    patch.setattr(SINKS[Strategy.BATCH_MARKER], "gathered", _append_then_mark)
    return cell(Strategy.BATCH_MARKER, Order.NONE, FailPoint.AFTER_COMMIT)


def _append_then_mark(sink, batch, votes):
    for vote in votes:
        for row in vote.rows:
            sink.store.append(row)
    return nullcontext()


MUTANTS = [
    commit_before_the_decision,
    skip_the_handle_file,
    drop_the_confirmation,
    abort_what_was_decided,
    forget_orphans,
    marker_outside_the_transaction,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_sink_differs_from_its_prediction(
    mutant: Callable[[pytest.MonkeyPatch], Cell], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    broken = mutant(monkeypatch)
    assert outcome(broken, tmp_path) != CELLS[broken].compared()


def outcome(broken: Cell, folder: Path) -> dict | str:
    """What came out; a broken sink may also never pass the point."""
    try:
        return given(broken, folder)
    except NeverReached as never:
        return str(never)


def test_a_reused_handle_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(two_phase.TwoPhaseSink, "resolutions", lambda *_: [])
    begin = two_phase.TwoPhaseSink.begin
    monkeypatch.setattr(
        two_phase.TwoPhaseSink, "begin", lambda sink, handle: begin(sink, handle._replace(incarnation=1, attempt=0))
    )
    engine = PlainEngine(tmp_path, Strategy.TWO_PHASE, "files", Order.DECISION)
    engine.drive(Crash(FailPoint.AFTER_PRE_COMMIT))
    with pytest.raises(JobFailed):
        engine._live(None)


def test_a_run_whose_point_is_not_reached_does_not_pass(tmp_path: Path):
    with pytest.raises(NeverReached):
        crashed(tmp_path, Strategy.APPEND, "files", Order.NONE, [FailPoint.MID_COMMIT])
