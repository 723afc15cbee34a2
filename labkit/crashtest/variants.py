"""Runs in which not a crash is the trouble, but an identity: of a batch, a checkpoint, a query, a driver.

One function a variant, each on a workshop and a trial. This module must not judge.
"""

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labkit.core.errors import JobFailed
from labkit.crashtest.harness.drivers import Driver
from labkit.crashtest.harness.runs import (
    NEVER_REACHED,
    Trial,
    Workshop,
    follow,
    testimony,
)
from labkit.crashtest.instrument.recorder import go_on
from labkit.crashtest.points import last_point, zombie_point
from labkit.crashtest.rows import Rows

REPLACED_SECONDS = 12.0
"""How long a driver that replaces a stopped one may take before the stopped one is said to hold it up."""


def both(workshop: Workshop) -> Rows:
    """The rows of two queries on one store."""
    first, second = workshop.rows(), workshop.rows(workshop.settings.batches)
    return Rows(
        [batch.rows for batch in (*first.batches, *second.batches)],
        generated=first.generated,
    )


def _second_input(workshop: Workshop, trial: Trial) -> None:
    """Leaves the first half of the rows to the first query and gives the rest to a second one."""
    half = workshop.settings.batches
    shutil.rmtree(trial.folder / "input")
    for folder, batches in (
        ("input", trial.rows.batches[:half]),
        ("input-2", trial.rows.batches[half:]),
    ):
        Rows([batch.rows for batch in batches]).write(trial.folder / folder)


def fresh_checkpoint(workshop: Workshop, trial: Trial) -> None:
    """One query to its end, then another one with a checkpoint of its own: its batch ids start at 0 again."""
    _second_input(workshop, trial)
    for query in (1, 2):
        trial.watcher.driver = query
        driver = workshop.driver()
        ending = follow(driver.give([workshop.cell(trial, query, None, query=query)]))
        _rest(workshop, trial, driver, ending)


def two_queries(workshop: Workshop, trial: Trial) -> None:
    """Both at once, in one driver."""
    _second_input(workshop, trial)
    driver = workshop.driver()
    ending = follow(
        driver.give([workshop.cell(trial, 1, None, query=query) for query in (1, 2)])
    )
    _rest(workshop, trial, driver, ending)


def _rest(
    workshop: Workshop, trial: Trial, driver: Driver, ending: dict[str, Any]
) -> None:
    if ending["event"] in ("died", "unwanted"):
        workshop.end(driver)
        raise JobFailed("the sink ended its driver's process")
    workshop.rest(driver, ending)
    if ending["event"] == "failed":
        trial.stuck = str(ending["because"])


def copied_checkpoint(workshop: Workshop, trial: Trial) -> None:
    """All batches, then those behind batch 0 again from an older copy of the checkpoint: same query, same batch ids."""
    workshop.play(trial)
    if trial.raised:
        raise JobFailed(f"without a crash the sink raised {trial.raised}")
    kept = trial.folder / "checkpoint-later"
    trial.checkpoint.rename(kept)
    shutil.copytree(kept, trial.checkpoint)
    for log in ("offsets", "commits", "sources/0"):
        for path in (trial.checkpoint / log).iterdir():
            if _number(path) > 0:
                path.unlink()
    trial.watcher.driver = 2
    driver = workshop.driver()
    ending = follow(driver.give([workshop.cell(trial, 2, None)]))
    _rest(workshop, trial, driver, ending)


def _number(path: Path) -> int:
    digits = path.name.strip(".").removesuffix(".crc")
    return int(digits) if digits.isdigit() else 0


def other_rows(workshop: Workshop, trial: Trial) -> None:
    """A crash when batch 1 is written and not recorded; then its id comes with more rows, the next batch's first."""
    point = last_point(workshop.healthy_log)
    if point is None:
        raise JobFailed("no call of the sink was recorded")
    driver = workshop.driver()
    ending = follow(driver.give([workshop.cell(trial, 1, point)]))
    if ending["event"] != "killed":
        workshop.rest(driver, ending)
        raise JobFailed(f"{NEVER_REACHED}: the run ended without a crash")
    workshop.end(driver)
    workshop.note(trial, 1, point, ending)
    _move_rows(trial, point.batch)
    trial.watcher.driver = 2
    driver = workshop.driver()
    _rest(
        workshop,
        trial,
        driver,
        follow(driver.give([workshop.cell(trial, 2, None)], ending)),
    )


def _move_rows(trial: Trial, batch: int) -> None:
    """Each file of this batch is followed by half of a file of the next batch, or loses half if it is the last."""
    rows = [list(each.rows) for each in trial.rows.batches]
    if batch + 1 < len(rows):
        half = len(rows[batch + 1]) // 2
        rows[batch], rows[batch + 1] = (
            rows[batch] + rows[batch + 1][:half],
            rows[batch + 1][half:],
        )
    else:
        half = len(rows[batch]) // 2
        rows[batch - 1], rows[batch] = (
            rows[batch - 1] + rows[batch][:half],
            rows[batch][half:],
        )
    Rows(rows, generated=trial.rows.generated).write(trial.folder / "input")


def stopped_driver(workshop: Workshop, trial: Trial) -> None:
    """A driver is stopped before a lasting effect, another one takes over its checkpoint, and the first goes on."""
    point = zombie_point(workshop.healthy_log)
    if point is None:
        raise JobFailed(
            "the sink has no durable effect that was seen, so there is nowhere to stop it"
        )
    old = workshop.driver()
    try:
        ending = follow(old.give([workshop.cell(trial, 1, point, "stop")]))
        if ending["event"] != "stopped":
            raise JobFailed(f"{NEVER_REACHED}: the run ended without a stop")
        reached = trial.folder / "reached-1.json"
        session = int(testimony(reached, point)["session"])
        old.signal(session, signal.SIGSTOP)
        trial.crashes.append(
            {
                "point": point.id,
                "signal": int(signal.SIGSTOP),
                "session": session,
                "at": time.time(),
            }
        )
        trial.watcher.driver = 2

        def wake() -> None:
            Path(go_on(str(reached))).touch()
            old.signal(session, signal.SIGCONT)

        _replace(workshop, trial, wake)
        wake()
        _see_out(workshop, trial, old)
    finally:
        workshop.end(old)


def _see_out(workshop: Workshop, trial: Trial, old: Driver) -> None:
    """Waits until the continued driver's query has ended or hangs (`--limit`), so that a late write is seen, too."""
    ending = follow(old.events)
    while ending["event"] == "stopped":  # its main loop says so once more
        ending = follow(old.events)
    said = (
        f"failed: {ending['because']}"
        if ending["event"] == "failed"
        else ending["event"]
    )
    trial.notes.append(f"the old driver was continued and {said}")
    time.sleep(workshop.settings.settle)


def _replace(workshop: Workshop, trial: Trial, wake: Callable[[], None]) -> None:
    """The new driver; if it fails while the old one is stopped, the old one is continued and it tries again."""
    new = workshop.driver()
    cell = {**workshop.cell(trial, 2, None), "limit": REPLACED_SECONDS}
    ending = follow(new.give([cell]))
    if ending["event"] == "failed":
        trial.notes.append(
            f"while the old driver was stopped, the new one failed: {ending['because']}"
        )
        wake()
        time.sleep(workshop.settings.settle)
        ending = follow(new.give([{**cell, "name": f"{cell['name']}-again"}]))
    _rest(workshop, trial, new, ending)


PLAYS: dict[str, Callable[[Workshop, Trial], None]] = {
    "fresh_checkpoint": fresh_checkpoint,
    "two_queries": two_queries,
    "copied_checkpoint": copied_checkpoint,
    "other_rows": other_rows,
    "stopped_driver": stopped_driver,
}
"""By the names of `labkit.crashtest.settings.VARIANTS`."""

TWO = ("fresh_checkpoint", "two_queries")
"""Those with rows of two queries."""
