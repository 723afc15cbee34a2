"""Performs the variants: runs whose fault concerns the identity of a batch, checkpoint, query or driver, not a crash.

Each variant is a function of a harness and of the run that it performs.
"""

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from labkit.core.errors import JobFailed
from labkit.crashtest.harness.drivers import Driver
from labkit.crashtest.harness.evidence import read_evidence
from labkit.crashtest.harness.outcomes import Finished, Outcome, follow
from labkit.crashtest.harness.runs import Harness, Run
from labkit.crashtest.instrument.recorder import go_on
from labkit.crashtest.jobs import NEVER_REACHED
from labkit.crashtest.points import last_point, zombie_point
from labkit.crashtest.rows import Rows
from labkit.host.processes.events import Died, Ending, Killed, Stopped, Unwanted
from labkit.host.processes.sessions import await_stopped, signal_session

STOP_SECONDS = 30.0
"""The seconds within which a process must stop after it has written the evidence that it reached its crash point."""

REPLACED_SECONDS = 12.0
"""The seconds without progress of the new driver after which the stopped driver counts as blocking it."""


def both(harness: Harness) -> Rows:
    """Return the input rows of two queries that write into one store."""
    first, second = harness.rows(), harness.rows(harness.settings.batches)
    return Rows([batch.rows for batch in (*first.batches, *second.batches)], generated=first.generated)


def _second_input(harness: Harness, run: Run) -> None:
    """Split the run's input: the first half of the batches for one query, the others for a second query."""
    half = harness.settings.batches
    shutil.rmtree(run.folder / "input")
    for folder, batches in (("input", run.rows.batches[:half]), ("input-2", run.rows.batches[half:])):
        Rows([batch.rows for batch in batches]).write(run.folder / folder)


def fresh_checkpoint(harness: Harness, run: Run) -> None:
    """Run a query to its end, then another query with its own checkpoint, whose batch ids start at 0 again."""
    _second_input(harness, run)
    for query in (1, 2):
        run.watcher.driver = query
        driver = harness.driver()
        ending = follow(driver.give([harness.query(run, query, None, query=query)]))
        _keep_idle(harness, run, driver, ending)


def two_queries(harness: Harness, run: Run) -> None:
    """Run two queries in parallel in one driver, which write into the same store."""
    _second_input(harness, run)
    driver = harness.driver()
    ending = follow(driver.give([harness.query(run, 1, None, query=query) for query in (1, 2)]))
    _keep_idle(harness, run, driver, ending)


def _keep_idle(harness: Harness, run: Run, driver: Driver, outcome: Outcome) -> None:
    if isinstance(outcome, Died | Unwanted):
        harness.end(driver)
        raise JobFailed("the sink ended its driver's process")
    harness.keep_idle(driver, outcome)
    if isinstance(outcome, Finished) and outcome.failed:
        run.stuck = outcome.failed


def copied_checkpoint(harness: Harness, run: Run) -> None:
    """Run all batches, then repeat those after batch 0 from an older copy of the checkpoint, with the same
    batch ids.
    """
    harness.execute(run)
    if run.raised:
        raise JobFailed(f"the sink failed without a crash: {run.raised}")
    kept = run.folder / "checkpoint-later"
    run.checkpoint.rename(kept)
    shutil.copytree(kept, run.checkpoint)
    for log in ("offsets", "commits", "sources/0"):
        for path in (run.checkpoint / log).iterdir():
            if _number(path) > 0:
                path.unlink()
    run.watcher.driver = 2
    driver = harness.driver()
    ending = follow(driver.give([harness.query(run, 2, None)]))
    _keep_idle(harness, run, driver, ending)


def _number(path: Path) -> int:
    digits = path.name.strip(".").removesuffix(".crc")
    return int(digits) if digits.isdigit() else 0


def other_rows(harness: Harness, run: Run) -> None:
    """Crash when a batch (usually batch 1) is written but not recorded, then repeat the batch id with more rows.

    The additional rows are those with which the next batch would begin.
    """
    point = last_point(harness.healthy_log)
    if point is None:
        raise JobFailed("no call of the sink was recorded")
    driver = harness.driver()
    ending = follow(driver.give([harness.query(run, 1, point)]))
    if not isinstance(ending, Killed):
        harness.keep_idle(driver, ending)
        raise JobFailed(f"{NEVER_REACHED}: the run ended without a crash")
    harness.end(driver)
    harness.record_crash(run, 1, point, ending)
    _move_rows(run, point.batch)
    run.watcher.driver = 2
    driver = harness.driver()
    _keep_idle(harness, run, driver, follow(driver.give([harness.query(run, 2, None)], ending)))


def _move_rows(run: Run, batch: int) -> None:
    """Move half of the next batch's rows into this batch.

    If this is the last batch, move half of its own rows to the previous batch instead.
    """
    rows = [list(each.rows) for each in run.rows.batches]
    if batch + 1 < len(rows):
        half = len(rows[batch + 1]) // 2
        rows[batch], rows[batch + 1] = (rows[batch] + rows[batch + 1][:half], rows[batch + 1][half:])
    else:
        half = len(rows[batch]) // 2
        rows[batch - 1], rows[batch] = (rows[batch - 1] + rows[batch][:half], rows[batch][half:])
    Rows(rows, generated=run.rows.generated).write(run.folder / "input")


def stopped_driver(harness: Harness, run: Run) -> None:
    """Stop a driver before a durable effect, start another on the same checkpoint, then continue the stopped one."""
    point = zombie_point(harness.healthy_log)
    if point is None:
        raise JobFailed("the test saw no durable effect of the sink, so there is no point to stop it at")
    old = harness.driver()
    try:
        ending = follow(old.give([harness.query(run, 1, point, "stop")]))
        if not isinstance(ending, Stopped):
            raise JobFailed(f"{NEVER_REACHED}: the run ended before labkit could stop its driver with SIGSTOP")
        reached = run.folder / "reached-1.json"
        evidence = read_evidence(reached, point)
        session = int(evidence["session"])
        # The process leaves its evidence first and then stops itself.
        if not await_stopped(int(evidence["pid"]), STOP_SECONDS):
            raise JobFailed(f"{NEVER_REACHED}: the driver did not stop at its point")
        signal_session(session, signal.SIGSTOP)
        run.crashes.append({"point": point.id, "signal": int(signal.SIGSTOP), "session": session, "at": time.time()})
        run.watcher.driver = 2

        def wake() -> None:
            Path(go_on(str(reached))).touch()
            signal_session(session, signal.SIGCONT)

        _replace(harness, run, wake)
        wake()
        _see_out(harness, run, old)
    finally:
        harness.end(old)


def _see_out(harness: Harness, run: Run, old: Driver) -> None:
    """Wait until the query of the continued driver has ended or hangs (`--limit`), so that its late writes become
    visible.
    """
    ending = follow(old.events)
    while isinstance(ending, Stopped):  # the driver's main loop reports the same stop once more
        ending = follow(old.events)
    run.notes.append(f"the old driver was continued and {_ending_text(ending)}")
    time.sleep(harness.settings.settle)


def _ending_text(outcome: Finished | Ending) -> str:
    match outcome:
        case Finished():
            return f"failed: {outcome.failed}" if outcome.failed else "ended"
        case Killed():
            return "killed"
        case Died():
            return "died"
        case Unwanted():
            return "unwanted"


def _replace(harness: Harness, run: Run, wake: Callable[[], None]) -> None:
    """Run the new driver while the old one is stopped.

    If the new driver's query fails, call `wake`, which continues the old driver, and run the query again.
    """
    new = harness.driver()
    query = replace(harness.query(run, 2, None), limit=REPLACED_SECONDS)
    outcome = follow(new.give([query]))
    if isinstance(outcome, Finished) and outcome.failed:
        run.notes.append(f"the new driver failed while the old one was stopped: {outcome.failed}")
        wake()
        time.sleep(harness.settings.settle)
        outcome = follow(new.give([replace(query, name=f"{query.name}-again")]))
    _keep_idle(harness, run, new, outcome)


VARIANT_RUNS: dict[str, Callable[[Harness, Run], None]] = {
    "fresh_checkpoint": fresh_checkpoint,
    "two_queries": two_queries,
    "copied_checkpoint": copied_checkpoint,
    "other_rows": other_rows,
    "stopped_driver": stopped_driver,
}
"""The function that performs each variant, by its name in `labkit.crashtest.verdict.VARIANTS`."""

TWO = ("fresh_checkpoint", "two_queries")
"""The variants whose input is the rows of two queries."""
