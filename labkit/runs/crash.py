"""Run one crash on real Spark, from the options to the verdict: the work of `lab.crash` and `labkit run`.

A run goes through three stages, each in its own module: `prepare`, `conduct`, `conclude`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labkit.core.arguments import takes
from labkit.core.errors import LabError
from labkit.runs.conclude import conclude
from labkit.runs.conduct import Setup, conduct
from labkit.runs.driver_task import PATIENCE
from labkit.runs.outcome import Outcome
from labkit.runs.prepare import fresh_folder, prepare, prepare_all
from labkit.runs.progress import Tell, aloud, in_place, silent
from labkit.runs.run import Run
from labkit.runs.scenario import Scenario, plan
from labkit.runs.scenario.arguments import takes_options
from labkit.runs.warm_drivers import warm_drivers
from labkit.runs.watching import watched


@takes_options("crashes")
@takes('lab.crash("sink.after_pre_commit", sink="append")')
def crash(
    at: str | Sequence[str] = (),
    *,
    folder: Path | None = None,
    standby: bool = False,
    tell: Tell | None = None,
    **options: object,
) -> Outcome:
    """Run the word count on real Spark, kill it at each failpoint of `at` in turn, and judge what readers could see.

    `at` is `POINT` or `POINT@BATCH`, or a list of them, the nth for the nth driver; without it nothing crashes. With
    `standby` a warm driver waits for each crash. The other options are those of `labkit run`. A crash takes about 20
    seconds, during which `tell` receives every event; by default a notebook shows one changing line and a terminal
    prints lines. Raises a `LabError` with one sentence if the scenario is impossible or the run failed, and `TypeError`
    for an unknown option.
    """
    run = prepare(plan(crashes=at, **options), folder)
    with watched(tell, aloud, crashes=len(run.scenario.crashes)) as (observer, heartbeat):
        return finish(run, observer, setup=Setup(standby=standby, warm=warm_drivers()), heartbeat=heartbeat)


@takes('lab.crash_each({"append": {"at": "sink.mid_write", "sink": "append"}})')
def crash_each(
    cases: Mapping[str, Mapping[str, Any]], *, folder: Path | None = None, tell: Tell | None = None
) -> dict[str, Outcome]:
    """Run several crashes in shared drivers, which is faster than one by one, and return their outcomes by name.

    `cases` maps a name to the arguments of `crash`. Raises the error of the first run that failed.
    """
    scenarios = [_planned(**case) for case in cases.values()]
    base = fresh_folder("several") if folder is None else folder.absolute()
    runs = prepare_all({base / f"{number}-{each.name}": each for number, each in enumerate(scenarios, 1)})
    crashes = max((len(each.crashes) for each in scenarios), default=0)
    with watched(tell, in_place, crashes=crashes, runs=len(runs)) as (observer, heartbeat):
        conduct(runs, base / "scratch", observer, heartbeat=heartbeat)
    return {name: conclude(run) for name, run in zip(cases, runs, strict=True)}


def _planned(at: str | Sequence[str] = (), **options: object) -> Scenario:
    return plan(crashes=at, **options)


def finish(
    run: Run,
    tell: Tell = silent,
    patience: float = PATIENCE,
    setup: Setup | None = None,
    *,
    heartbeat: Callable[[], None] | None = None,
) -> Outcome:
    """Drive a prepared run through its crashes to its end, judge it, and return the outcome.

    `patience` is in seconds. Raises the error of the run, or the exception that `heartbeat` raised.
    """
    conduct([run], run.folder.path / "scratch", tell, patience, setup, heartbeat=heartbeat)
    return conclude(run)


def run_all(runs: Sequence[Run], scratch: Path, tell: Tell = silent) -> list[Outcome | LabError]:
    """Drive prepared runs through their crashes to their ends, judge them, and return an outcome or an error for each.

    `scratch` is a folder for temporary files.
    """
    conduct(runs, scratch, tell)
    return [_concluded_or_error(run) for run in runs]


def _concluded_or_error(run: Run) -> Outcome | LabError:
    try:
        return conclude(run)
    except LabError as error:
        return error
