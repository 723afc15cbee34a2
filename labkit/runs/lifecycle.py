"""A crash on real Spark from its start to its verdict: what the notebooks' `crash` and the command line's `run` do.

A run is prepared, driven to its end by the runner, judged, and written down; its `Outcome` is what is left. Nothing
here knows a protocol, and nothing here is shown in a notebook by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from labkit.core.asked import takes
from labkit.core.errors import LabError
from labkit.host.java import find_java
from labkit.runs.conclusion import conclude
from labkit.runs.outcome import Outcome
from labkit.runs.progress import Tell, aloud, in_place, silent
from labkit.runs.run import Run, prepare, resume
from labkit.runs.runner import PATIENCE, Setup, conduct
from labkit.runs.scenario import Scenario, check_input, plan
from labkit.runs.scenario.arguments import takes_options
from labkit.runs.watching import watched
from labkit.spark.master import Victim


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
    """Runs the word count on real Spark, kills it at each point of `at` in turn, and judges what came out.

    `at` is `POINT` or `POINT@BATCH`, or several, the nth for the nth driver; none: a run without a crash. With
    `standby` a warm driver waits for each crash. The other options are those of `labkit run`. Takes about 20 seconds,
    during which `tell` says what happens: by default one changing line in a notebook, and lines in a terminal.
    Raises a `LabError` with one sentence when the scenario is impossible or the run failed, `TypeError` for an option
    that is unknown.
    """
    run = prepare_checked(_planned(at, **options), folder)
    with watched(tell, aloud, crashes=len(run.scenario.crashes)) as (told, heartbeat):
        return finish(run, told, setup=Setup(standby=standby), heartbeat=heartbeat)


@takes('lab.crash_each({"append": {"at": "sink.mid_write", "sink": "append"}})')
def crash_each(
    cases: Mapping[str, Mapping[str, Any]], *, folder: Path | None = None, tell: Tell | None = None
) -> dict[str, Outcome]:
    """Several crashes by name, each with the arguments of `crash`, in drivers that they share: faster than one by one.

    Raises the first run's error, if one failed.
    """
    scenarios = {name: _planned(**case) for name, case in cases.items()}
    # Every input is read before the first folder is made, so that one bad case costs
    # the others nothing.
    for scenario in scenarios.values():
        check_input(scenario)
    find_java()
    base = fresh_folder("several") if folder is None else folder.absolute()
    runs = [
        prepare(scenario, base / f"{number}-{scenario.name}") for number, scenario in enumerate(scenarios.values(), 1)
    ]
    crashes = max((len(each.crashes) for each in scenarios.values()), default=0)
    with watched(tell, in_place, crashes=crashes, runs=len(runs)) as (told, heartbeat):
        conduct(runs, base / "scratch", told, heartbeat=heartbeat)
    return {name: judged(run) for name, run in zip(scenarios, runs, strict=True)}


def _planned(at: str | Sequence[str] = (), **options: object) -> Scenario:
    return plan(crashes=at, **options)


@takes("lab.prepare_checked(scenario)")
def prepare_checked(scenario: Scenario, folder: Path | None = None) -> Run:
    """A run in a folder of its own, its whole input checked. Raises `InvalidInput` or `ServiceUnavailable`."""
    check_input(scenario)
    find_java()
    return prepare(scenario, fresh_folder(scenario.name) if folder is None else folder.absolute())


@takes("lab.finish(lab.resumed(folder))")
def finish(
    run: Run,
    tell: Tell = silent,
    patience: float = PATIENCE,
    setup: Setup | None = None,
    *,
    heartbeat: Callable[[], None] | None = None,
) -> Outcome:
    """Drives one run to its end and judges it. Raises the run's error, or what the heartbeat of `conduct` raised."""
    conduct([run], run.folder.path / "scratch", tell, patience, setup, heartbeat=heartbeat)
    return judged(run)


@takes("lab.run_all([run], scratch)")
def run_all(runs: Sequence[Run], scratch: Path, tell: Tell = silent) -> list[Outcome | LabError]:
    """Drives several runs to their ends, side by side; a run that failed gives its error."""
    conduct(runs, scratch, tell)
    return [_judged_or_error(run) for run in runs]


LEADS = {
    Victim.DRIVER: "One real Spark job, killed by SIGKILL and restarted from its checkpoint; read from outside.",
    Victim.EXECUTOR: "One real Spark job; an executor was killed by SIGKILL, and its driver tried the task again; "
    "read from outside.",
}
"""What a report says first."""


def _judged_or_error(run: Run) -> Outcome | LabError:
    try:
        return judged(run)
    except LabError as error:
        return error


@takes("lab.judged(run)")
def judged(run: Run) -> Outcome:
    """The outcome of a run that has been driven, with its report. Raises the run's error."""
    if run.error is not None:
        raise run.error
    # The pages load the drawing libraries, which a run that is refused never needs.
    from labkit.runs.pages.diagram import write_diagram
    from labkit.runs.pages.report import write_report

    record = conclude(run)
    title = f"Crash report: {run.scenario.label}"
    write_report([record], run.folder.report, title, LEADS[run.scenario.victim])
    write_diagram(record)
    return Outcome(record)


@takes("lab.resumed(folder)")
def resumed(folder: Path) -> Run:
    """A run whose runner was stopped, ready to be finished. Raises `InvalidInput`."""
    return resume(folder.absolute())


@takes('lab.fresh_folder("mine")')
def fresh_folder(name: str) -> Path:
    """`runs/<utc time>-<name>` below the working folder, not there yet."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    base = Path("runs").absolute() / f"{stamp}-{name}"
    folder, number = base, 1
    # Two runs may begin in the same second.
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}-{number}")
    return folder
