"""The pipeline: known counts, a second interpreter, rules that are missed when they are broken, and its scenarios."""

import pytest
from cases_pipeline import MUTANTS
from model_cases import Patch
from plain_pipeline import pipeline
from plain_search import freeze

from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.judge import Guarantee
from labkit.core.records import Reading
from labkit.core.strategies import POINTS, Op, Strategy
from labkit.runs.expected import Cell, compared, expectations
from labkit.sim.explore import explore, reachable
from labkit.sim.models.pipeline import BLUEPRINT, programs
from labkit.sim.models.pipeline.claims import Judge
from labkit.sim.models.pipeline.effects import TASKS
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.scenarios import crashed, simulate
from labkit.sim.models.pipeline.state import State, Status
from labkit.sim.trace import make, replay
from labkit.sim.verdicts import verdict_of

CELLS = expectations()

trace_of = BLUEPRINT.trace_of


def build(**given: object) -> Pipeline:
    return make("pipeline", given)


SMALL = [
    *(("append", "none", size, crashes, 0) for size, crashes in ((3, 2), (1, 1))),
    *(("batch_marker", "none", size, crashes, 0) for size, crashes in ((3, 2), (1, 2))),
    *(("wal", "engine", size, crashes, 0) for size, crashes in ((3, 2), (2, 1))),
    *(("wal", "decision", size, crashes, lost) for size, crashes, lost in ((3, 2, 1), (2, 1, 1))),
    *(("two_phase", "engine", size, crashes, 0) for size, crashes in ((3, 2), (2, 1))),
    *(("two_phase", "decision", size, crashes, lost) for size, crashes, lost in ((3, 2, 1), (2, 1, 1), (1, 1, 0))),
]


@pytest.mark.parametrize(("strategy", "order", "size", "crashes", "lost"), SMALL)
def test_a_second_interpreter_reaches_the_same(strategy: str, order: str, size: int, crashes: int, lost: int):
    given = {"strategy": strategy, "order": "default" if order == "none" else order}
    mine = reachable(build(**given, records_per_batch=size, crashes=crashes, lost_notices=lost))
    words = ["hello", "world", "hello"]
    assert {freeze(told(state)) for state in mine} == set(pipeline(strategy, order, words, size, crashes, lost))


@pytest.mark.parametrize(("strategy", "order"), [cell[:2] for cell in SMALL if cell[2] == 3])
def test_a_second_interpreter_forgets_the_same(strategy: str, order: str):
    given = {"strategy": strategy, "order": "default" if order == "none" else order, "source": "socket"}
    mine = reachable(build(**given, records_per_batch=2, crashes=2))
    words = ["hello", "world", "hello"]
    assert {freeze(told(state)) for state in mine} == set(pipeline(strategy, order, words, 2, 2, 0, "socket"))


def told(state: State) -> dict:
    """A state in the words of the plain interpreter, which knows no second attempt at a task: here is none."""
    assert not any(each.handle.attempt for each in state.transactions)
    query, driver = state.query, state.query.driver
    transactions = {status: {} for status in Status}
    for each in state.transactions:
        transactions[each.status][each.handle[1:4]] = list(each.rows)
    return {
        "planned": list(query.ends),
        "decided": query.decided,
        "votes": {batch: [handle[1:4] for handle in handles] for batch, handles in query.handles},
        "logs": list(query.logs),
        "confirmed": list(query.confirmed),
        "drivers": query.incarnation,
        "place": driver.place,
        "batch": driver.batch,
        "left": [told_task(task) for task in driver.todo],
        "told": [told_task(task) for task in driver.settling],
        "notice": driver.notice,
        "seen": [("crash", row.incarnation) if row.offset < 0 else tuple(row[:3]) for row in state.seen],
        **{status.value: transactions[status] for status in Status},
        "markers": [batch for _, batch in state.markers],
        "crashes": state.faults.crashes,
        "lost": state.faults.lost_notices,
    }


def told_task(task) -> tuple:
    names = [handle[1:4] for handle in task.handles]
    if task.op in (Op.COMMIT, Op.ABORT, Op.PREPARE, Op.SEAL):
        return (task.op, names[0])
    if task.op in (Op.WRITE, Op.FLUSH):
        return (task.op, (task.which, task.batch))
    if task.op in (Op.HAND_OVER, Op.LOG):
        return (task.op, task.which)
    special = {
        Op.INSERT: lambda: ("insert", (names[0], task.which)),
        Op.MARK: lambda: ("mark", (list(task.rows), task.batch)),
        Op.STORE_HANDLES: lambda: ("store", (task.batch, names)),
        Op.LOG_COMMIT: lambda: ("decide", task.batch),
        Op.RESOLVED: lambda: ("resolved", None),
        Op.TELL: lambda: ("tell", None),
    }
    return special[task.op]() if task.op in special else (task.op, task.batch)


def test_the_history_tells_when_a_reader_looked():
    walk = crashed(Strategy.APPEND, Order.NONE, "files", [Crash(FailPoint.MID_WRITE)])
    events = list(Judge(walk.model.settings).history(walk.state).events)
    assert [event.moment for event in events if isinstance(event, Reading)] == ["crash 1", "end"]
    assert [event.offset for event in events if not isinstance(event, Reading)] == [1, 0, 1, 0, 2]


def test_a_point_that_is_never_reached_is_no_result():
    with pytest.raises(JobFailed, match=r"recovery\.mid_resolve was never reached"):
        simulate(Strategy.APPEND, Order.NONE, "files", [Crash(FailPoint.MID_WRITE), Crash(FailPoint.MID_RESOLVE)])


NAMED = {
    "undisturbed": (Guarantee.EXACTLY_ONCE, {}),
    "jump_back": (Guarantee.EXACTLY_ONCE, {"regression": (0,)}),
    "append_twice": (Guarantee.AT_LEAST_ONCE, {"duplicate": (0, 1, 2)}),
    "append_once": (Guarantee.EXACTLY_ONCE, {"regression": ()}),
    "half_flushed_log": (Guarantee.AT_LEAST_ONCE, {"duplicate": (1,)}),
    "deleted_log": (Guarantee.AT_MOST_ONCE, {"lost": (0, 2)}),
    "marker": (Guarantee.EXACTLY_ONCE, {}),
    "commit_then_decide": (Guarantee.AT_LEAST_ONCE, {"duplicate": (0, 1, 2)}),
    "decide_then_commit": (Guarantee.EXACTLY_ONCE, {}),
    "half_committed": (Guarantee.EXACTLY_ONCE, {"fractured_read": (1,)}),
    "second_crash": (Guarantee.EXACTLY_ONCE, {}),
    "commit_raises_again": (Guarantee.UNKNOWN, {"unseen": (0, 2), "lost": ()}),
    "second_crash_of_the_log": (Guarantee.AT_LEAST_ONCE, {"duplicate": (1,)}),
    "lost_notification": (Guarantee.EXACTLY_ONCE, {}),
    "late_notification": (Guarantee.EXACTLY_ONCE, {"fractured_read": ()}),
    "transaction_timeout": (Guarantee.AT_MOST_ONCE, {"lost": (1,)}),
    "timeout_in_a_loop": (Guarantee.AT_MOST_ONCE, {"lost": (1,), "unseen": (0, 2)}),
    "timeout_before_the_commit": (Guarantee.EXACTLY_ONCE, {}),
    "expired_checkpoint": (Guarantee.EXACTLY_ONCE, {}),
    "expired_and_aborted": (Guarantee.AT_MOST_ONCE, {"lost": (0,)}),
    "older_checkpoint": (Guarantee.AT_LEAST_ONCE, {"duplicate": (1,)}),
    "zombie": (Guarantee.AT_LEAST_ONCE, {"duplicate": (0, 1, 2)}),
    "zombie_upserts": (Guarantee.AT_MOST_ONCE, {"lost": (2,), "regression": (1,)}),
    "zombie_fenced": (Guarantee.AT_LEAST_ONCE, {"duplicate": (0, 1)}),
    "zombie_begins": (Guarantee.AT_LEAST_ONCE, {"duplicate": (0, 1, 2)}),
    "zombie_begins_fenced": (Guarantee.EXACTLY_ONCE, {}),
    "abrupt_end": (Guarantee.UNKNOWN, {"unseen": (0, 1, 2)}),
    "deleted_checkpoint": (Guarantee.AT_LEAST_ONCE, {"duplicate": (0, 1, 2)}),
    "deleted_checkpoint_and_markers": (Guarantee.AT_MOST_ONCE, {"lost": (1, 2)}),
    "forgetful_source": (Guarantee.AT_MOST_ONCE, {"lost": (0, 1, 2), "duplicate": ()}),
    "lost_and_doubled": (Guarantee.NONE, {"lost": (2,), "duplicate": (1,)}),
    "raw_table": (Guarantee.EXACTLY_ONCE, {"aborted_read": (0, 1, 2), "precommitted_read": (0, 1, 2)}),
}


@pytest.mark.parametrize("name", {**BLUEPRINT.scenarios, **NAMED})
def test_a_scenario_shows_what_it_promises(name: str):
    guarantee, anomalies = NAMED[name]
    found = verdict_of(replay(trace_of(name)))
    assert (found.guarantee, {anomaly: getattr(found, anomaly) for anomaly in anomalies}) == (guarantee, anomalies)


def test_the_late_notification_is_late():
    names = [str(action) for action in trace_of("late_notification").actions]
    assert names.index("prepare(1)") < names.index("notify(0)") < names.index("store_handles(1)")


def test_a_socket_gives_every_record_once():
    """After a crash the batch that was planned is empty, also in a fresh checkpoint folder; the next one is not."""
    model = build(source="socket", strategy="append", words="hello-world-hello", records_per_batch=1, deletions=1)
    for state in reachable(model):
        written = [row.offset for row in state.seen if row.offset >= 0]
        assert written == sorted(set(written)), "no record is ever written twice, and none out of order"
    again = [str(action) for action in trace_of("forgetful_source").actions]
    assert again.index("crash") < again.index("plan_nothing(0)")
    with pytest.raises(InvalidInput, match=r"rollbacks=1: .*; set source=log"):
        build(source="socket", rollbacks=1)


def test_a_vote_of_nobody_is_settled_without_a_commit():
    for strategy in ("two_phase", "wal"):
        found = explore(build(source="socket", strategy=strategy, records_per_batch=2, lost_notices=1))
        assert "ends" not in {violation.property for violation in found.violations}
        assert found.never_reached == ()


@pytest.mark.parametrize("mutant", [each for each in MUTANTS if not MUTANTS[each]])
def test_a_broken_rule_that_no_claim_misses_changes_the_grid(mutant: Patch, monkeypatch: pytest.MonkeyPatch):
    """Such a rule costs work that is done again, which the predicted cells notice."""
    mutant(monkeypatch)
    wrong = [cell for cell in CELLS if given_by(cell) != CELLS[cell].compared()]
    monkeypatch.undo()
    programs.batch_tasks.cache_clear()
    assert wrong


def given_by(cell: Cell) -> dict | str:
    try:
        return compared(simulate(cell.strategy, cell.order, cell.store, [Crash(cell.point)]).to_json())
    except JobFailed as failed:
        return str(failed)


def test_the_points_of_the_grid_are_all_passed_without_a_crash_unless_recovery_has_them():
    for (strategy, order), points in POINTS.items():
        walk = crashed(strategy, order, "sqlite", [])
        steps = zip(walk.states, walk.actions, strict=False)
        passed = [point for state, action in steps for point in walk.model.reached(state, action)]
        assert set(points) <= set(passed)


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        ("zombie_fenced", "The driver that was thought dead tries to go on, and is refused: it was replaced."),
        (
            "timeout_in_a_loop",
            (
                "The commit of the transaction of partition 1 is refused, and the driver ends with this error: the "
                "transaction q0-b0-p1-i1 is not prepared, so it cannot be committed."
            ),
        ),
        (
            "transaction_timeout",
            "The store has dropped the transaction of partition 1: the driver only logs the error.",
        ),
        ("second_crash", "The transaction of partition 1 is committed already: the second commit changes nothing."),
    ],
)
def test_a_step_that_is_refused_says_so(scenario, sentence):
    assert sentence in replay(trace_of(scenario)).sentences()


def test_what_is_told_of_a_walk_is_never_a_success_of_a_driver_that_fails():
    """Every state whose driver has just failed is told as a refusal, in every walk of the configuration."""
    model = make("pipeline", {"expiries": 1, "dropped": "raise"})
    seen = 0
    for state in reachable(model):
        for action, after in model.successors(state):
            if after.failures > state.failures:
                assert "is refused" in model.sentence_in(state, action)
                seen += 1
    assert seen > 10


def test_every_step_of_a_driver_has_a_rule():
    assert TASKS.keys() == set(Op)
