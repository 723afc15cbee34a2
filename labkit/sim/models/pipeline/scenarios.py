"""The named runs of the pipeline simulator, each with what to watch for, and simulated crashes at failpoints.

A script says which faults happen at which failpoint; between them the drivers go on without faults.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labkit.core.errors import JobFailed
from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.judge import Verdict
from labkit.core.records import History, Record
from labkit.core.strategies import Pending, Strategy
from labkit.sim.blueprint import Scenario, unasked
from labkit.sim.model import Action
from labkit.sim.models.pipeline.claims import NOTIFIED, ZOMBIE, Judge, expected
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.state import PARAMETERS, STORES, State
from labkit.sim.parameters import settle
from labkit.sim.walk import Replay


class Cue(NamedTuple):
    """One entry of a script: the actions to take when a driver first reaches this failpoint in this batch.

    At a failpoint of recovery, the batch does not matter.
    """

    point: FailPoint
    actions: tuple[str, ...] = ("crash",)
    batch: int = 0


def crashes(points: Sequence[Crash]) -> tuple[Cue, ...]:
    """Return the script that kills the nth driver at the nth point."""
    return tuple(Cue(crash.point, ("crash",), crash.batch) for crash in points)


def play(model: Pipeline, script: Sequence[Cue]) -> Replay:
    """Run the drivers until nothing is left to do, and take the actions of the script at their failpoints.

    A zombie driver wakes up when nothing else is left to do. Raises `JobFailed` if a failpoint of the script is never
    reached.
    """
    walk, waiting = Replay(model), list(script)
    while going_on := unasked(model, walk.state):
        awake = [action for action in going_on if not action.name.startswith(ZOMBIE)]
        action = (awake or going_on)[0]
        before = walk.state
        walk.forward(action)
        if waiting and _is_met(model, before, action, waiting[0]):
            for name in waiting.pop(0).actions:
                walk.forward(_named(model, walk.state, name))
    if waiting:
        raise JobFailed(f"the failpoint {waiting[0].point} was never reached: the run ended without it.")
    return walk


def _is_met(model: Pipeline, before: State, action: Action, cue: Cue) -> bool:
    driver = before.query.driver
    if cue.point not in model.reached(before, action):
        return False
    if cue.point.in_recovery or action.name == "plan":
        return cue.point.in_recovery or action.which == cue.batch
    tasks = driver.settling if action.name.startswith(NOTIFIED) else driver.todo
    return tasks[0].batch == cue.batch


def _named(model: Pipeline, state: State, name: str) -> Action:
    for action in model.actions(state):
        if name in (action.name, str(action)):
            return action
    raise JobFailed(f"{name} is not an enabled action in {model.text(state)}")


def is_modelled(store: str) -> bool:
    """Return whether the pipeline models this kind of store."""
    return store in STORES


def crashed(
    strategy: Strategy,
    order: Order,
    store: str,
    points: Sequence[Crash],
    words: Sequence[str] = (),
    *,
    source: Mapping[str, object] | None = None,
) -> Replay:
    """Return a run of the small job (hello, world, hello in one batch) whose nth driver is killed at the nth point.

    `source` holds the parameters of a source other than a log, and `words` another input, still in one batch.
    Raises `JobFailed` if a point is never reached, and `InvalidInput` if the store is not modelled or the input
    is too long.
    """
    parameters: dict[str, object] = {"strategy": strategy, "store": store, "crashes": len(points), **(source or {})}
    if words:
        parameters["words"] = "-".join(words)
    if order is not Order.NONE:
        parameters["order"] = order
    return play(Pipeline(settle("pipeline", PARAMETERS, parameters)), crashes(points))


def first_crash(walk: Replay) -> int:
    """Return the number of the step at which the first crash happens; the state before it has reached the failpoint.

    Raises `JobFailed` if the run contains no crash.
    """
    for step, action in enumerate(walk.actions, start=1):
        if action.name == "crash":
            return step
    raise JobFailed("this run contains no crash.")


def simulate(strategy: Strategy, order: Order, store: str, points: Sequence[Crash]) -> Verdict:
    """Return the judge's verdict on a simulated run with these crashes."""
    return verdict(crashed(strategy, order, store, points))


def history(walk: Replay) -> History:
    """Return the rows that an outside reader saw in a run."""
    assert isinstance(walk.model, Pipeline)
    return Judge(walk.model.settings).history(walk.state)


def due(walk: Replay) -> Sequence[Record]:
    """Return the records that should come out of a run."""
    assert isinstance(walk.model, Pipeline)
    return expected(walk.model.settings.words)


def tells_when_written(walk: Replay) -> bool:
    """Return whether every row that readers cannot see yet is in a transaction of the store.

    The alternatives are a log or the driver's memory, in which case nobody can tell how long a row has waited.
    """
    assert isinstance(walk.model, Pipeline)
    return walk.model.settings.strategy.facts.pending not in (Pending.LOG, Pending.DRIVER)


def verdict(walk: Replay) -> Verdict:
    """Return the judge's verdict on the end of a run."""
    assert isinstance(walk.model, Pipeline)
    return Judge(walk.model.settings).verdict(walk.state)


_BETWEEN = FailPoint.AFTER_PRE_COMMIT
_SMALL_BATCHES = {"records_per_batch": 1}
_DECIDES_FIRST = {"strategy": "two_phase", "order": "decision"}
_ON_DATABASE = {"strategy": "two_phase", "order": "engine", "store": "postgres", "zombies": 1}


def _at(point: FailPoint, *actions: str, batch: int = 0) -> tuple[Cue, ...]:
    """Return a script with one entry: at this failpoint these actions happen, or a crash if none are given."""
    return (Cue(point, actions or ("crash",), batch),)


SCENARIOS: dict[str, Scenario[tuple[Cue, ...]]] = {
    "undisturbed": Scenario(
        "The batch is planned, its rows are written one by one, and only then is it noted as finished.",
        {"strategy": "append"},
        (),
    ),
    "jump_back": Scenario(
        "hello is seen at 2, then at 1 again, then at 2: exactly-once in the end, and a reader saw the replay.",
        {"strategy": "idempotent", "store": "sqlite"},
        _at(_BETWEEN),
    ),
    "append_twice": Scenario(
        "Every row is there twice: the rows were visible before commits/0, and the batch runs again.",
        {"strategy": "append"},
        _at(_BETWEEN),
    ),
    "append_once": Scenario(
        "Killed after commits/0 instead: the batch is noted and does not run again. The same chain, a harmless moment.",
        {"strategy": "append"},
        _at(FailPoint.AFTER_COMMIT_LOG),
    ),
    "half_flushed_log": Scenario(
        "Nobody noted how far the flush had come, so world comes twice: a write-ahead log is at-least-once.",
        {"strategy": "wal"},
        _at(FailPoint.MID_COMMIT),
    ),
    "deleted_log": Scenario(
        "The same crash, but recovery deletes the log that was not confirmed: what was not flushed yet is lost.",
        {"strategy": "wal", "unconfirmed_log": "delete"},
        _at(FailPoint.MID_COMMIT),
    ),
    "marker": Scenario(
        "Rows and marker came together, so the re-run finds the marker and writes nothing.",
        {"strategy": "batch_marker"},
        _at(FailPoint.AFTER_COMMIT),
    ),
    "commit_then_decide": Scenario(
        "In commit-then-log order the sink has committed and commits/0 is missing: two-phase commit doubles the batch.",
        {"strategy": "two_phase", "order": "engine"},
        _at(FailPoint.AFTER_COMMIT),
    ),
    "decide_then_commit": Scenario(
        "The same crash in log-then-commit order: recovery commits by the stored handles, and nothing is doubled.",
        _DECIDES_FIRST,
        _at(FailPoint.AFTER_COMMIT_LOG),
    ),
    "half_committed": Scenario(
        "One participant has committed and the other has not: for the whole downtime a reader sees half of the batch.",
        _DECIDES_FIRST,
        _at(FailPoint.MID_COMMIT),
    ),
    "second_crash": Scenario(
        "Recovery itself dies half-way; the next one finishes it, because committing twice changes nothing.",
        {**_DECIDES_FIRST, "crashes": 2},
        (Cue(FailPoint.AFTER_COMMIT_LOG), Cue(FailPoint.MID_RESOLVE)),
    ),
    "commit_raises_again": Scenario(
        "One of two is committed before the crash, and a second commit is an error: every new driver meets it.",
        {"order": "decision", "committed_again": "raise"},
        _at(FailPoint.MID_COMMIT),
    ),
    "second_crash_of_the_log": Scenario(
        "The write-ahead log's recovery dies half-way and flushes again: world comes twice.",
        {"strategy": "wal", "crashes": 2},
        (Cue(FailPoint.AFTER_COMMIT_LOG), Cue(FailPoint.MID_RESOLVE)),
    ),
    "lost_notification": Scenario(
        "The notification of batch 0 is lost; the commit of batch 1 makes up for it: late, and nothing is lost.",
        {**_SMALL_BATCHES, "lost_notices": 1},
        _at(FailPoint.AFTER_COMMIT_LOG, "lose_notice"),
    ),
    "late_notification": Scenario(
        "Batch 1 is written and pre-committed before the notification of batch 0 comes: nothing is lost or doubled.",
        _SMALL_BATCHES,
        _at(FailPoint.AFTER_COMMIT_LOG, "plan", "insert", "prepare"),
    ),
    "transaction_timeout": Scenario(
        "The store drops a transaction between decision and commit, and the commit's error is only logged: lost.",
        {"expiries": 1, "dropped": "ignore"},
        _at(FailPoint.AFTER_COMMIT_LOG, "expire"),
    ),
    "timeout_in_a_loop": Scenario(
        "The same, but the commit raises: every new driver meets the same error, and the query never ends.",
        {"expiries": 1, "dropped": "raise"},
        _at(FailPoint.AFTER_COMMIT_LOG, "expire", "crash"),
    ),
    "timeout_before_the_commit": Scenario(
        "In commit-then-log order the commit raises before commits/0: the batch fails and runs "
        "again, and nothing is lost.",
        {"order": "engine", "expiries": 1, "dropped": "raise"},
        _at(_BETWEEN, "expire"),
    ),
    "expired_checkpoint": Scenario(
        "The checkpoint of batch 0 expires and the job lives on: its transaction rides along and commits with batch 1.",
        {**_SMALL_BATCHES, "lapses": 1},
        _at(FailPoint.AFTER_HANDLES, "lapse"),
    ),
    "expired_and_aborted": Scenario(
        "The same, but its transaction is aborted: the source does not go back, so the record is lost.",
        {**_SMALL_BATCHES, "lapses": 1, "lapsed": "aborted"},
        _at(FailPoint.AFTER_HANDLES, "lapse"),
    ),
    "older_checkpoint": Scenario(
        "An older checkpoint is restored: a batch that was committed runs again, and not even two-phase commit knows.",
        {**_SMALL_BATCHES, "rollbacks": 1},
        _at(FailPoint.AFTER_COMMIT, "crash", "roll_back", batch=1),
    ),
    "zombie": Scenario(
        "A driver that was thought dead wakes up and goes on writing: its rows are there a second time.",
        {"strategy": "append", "zombies": 1},
        _at(FailPoint.MID_WRITE, "replace_driver"),
    ),
    "zombie_upserts": Scenario(
        "The waking driver overwrites what batch 1 wrote: hello falls back from 3 to 2, and a record is lost.",
        {
            "strategy": "idempotent",
            "store": "sqlite",
            "zombies": 1,
            "words": "hello-hello-hello",
            "records_per_batch": 2,
        },
        _at(FailPoint.MID_WRITE, "replace_driver"),
    ),
    "zombie_fenced": Scenario(
        "The same, but whoever was replaced is refused: of the waking driver only what it wrote before is there.",
        {"strategy": "append", "zombies": 1, "fencing": True},
        _at(FailPoint.MID_WRITE, "replace_driver"),
    ),
    "zombie_begins": Scenario(
        "The waking driver had begun nothing that recovery could abort: it writes and commits the batch a second time.",
        _ON_DATABASE,
        _at(FailPoint.AFTER_OFFSET_LOG, "replace_driver"),
    ),
    "zombie_begins_fenced": Scenario(
        "The same, but its database knows who was replaced, and refuses the transaction that it wants to begin.",
        {**_ON_DATABASE, "fencing": True},
        _at(FailPoint.AFTER_OFFSET_LOG, "replace_driver"),
    ),
    "abrupt_end": Scenario(
        "The query ends before its last notification: the transactions stay prepared, and no row is visible.",
        {"sweeps": False, "lost_notices": 1},
        _at(FailPoint.AFTER_COMMIT_LOG, "lose_notice"),
    ),
    "deleted_checkpoint": Scenario(
        "A fresh folder has a new query and starts at offset 0: two-phase commit writes everything a second time.",
        {"deletions": 1},
        _at(FailPoint.AFTER_COMMIT, "crash", "delete_checkpoint"),
    ),
    "deleted_checkpoint_and_markers": Scenario(
        "Batch ids start at 0 again: a marker without the query's name hides new data, and it is lost.",
        {"strategy": "batch_marker", "markers": "batch", "deletions": 1, **_SMALL_BATCHES},
        _at(FailPoint.AFTER_COMMIT_LOG, "crash", "delete_checkpoint"),
    ),
    "forgetful_source": Scenario(
        "The rows were pre-committed and undecided, so recovery drops them; the socket cannot give them again: lost.",
        {"source": "socket"},
        _at(_BETWEEN),
    ),
    "lost_and_doubled": Scenario(
        "The log of batch 0 is flushed again, and batch 1 died with the driver: one record twice, another never.",
        {"source": "socket", "strategy": "wal", "records_per_batch": 2},
        _at(FailPoint.AFTER_COMMIT_LOG, "plan", "notify", "notified_look", "notified_flush", "crash"),
    ),
    "raw_table": Scenario(
        "Two-phase commit is simulated in a table that everybody can read: rows are seen that were never committed.",
        {"store": "sqlite", "reader": "table"},
        _at(_BETWEEN),
    ),
}
