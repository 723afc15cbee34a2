"""Run one crash on real Spark, from the options to the verdict: the work of `lab.crash` and `labkit run`.

A run goes through three stages, each in its own module: `prepare`, `conduct`, `conclude`.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any, TypeVar

from labkit.core.arguments import takes
from labkit.core.errors import LabError
from labkit.core.options import Option, options_of, with_arguments
from labkit.runs.conclude import conclude
from labkit.runs.conduct import Setup, conduct
from labkit.runs.driver_task import PATIENCE
from labkit.runs.outcome import Outcome
from labkit.runs.prepare import fresh_folder, prepare, prepare_all
from labkit.runs.progress import Tell, aloud, in_place, silent
from labkit.runs.run import Run
from labkit.runs.scenario import Scenario, plan
from labkit.runs.warm_drivers import warm_drivers
from labkit.runs.watching import watched

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def takes_options(*but: str, of: type[Scenario] = Scenario) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator that adds all options of a run except `but` to a function's signature and docstring.

    The function must take `**options`. `help()` and tab completion read the signature and the docstring.
    """

    def named(function: FunctionT) -> FunctionT:
        options = [each for each in options_of(of) if each.keyword not in but]
        lines = [f"    {each.keyword}: {each.help}" for each in options]
        function.__doc__ = "\n".join([inspect.getdoc(function) or "", "", "Options:", *lines])
        return with_arguments(function, [_argument(each) for each in options])

    return named


def _argument(option: Option[Any]) -> Parameter:
    default = option.default_word
    annotation = option.kind.accepts or option.kind.annotation
    return Parameter(
        option.keyword,
        Parameter.KEYWORD_ONLY,
        default=default,
        annotation=annotation | None if default is None else annotation,
    )


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
    """Run the word count on real Spark, kill its driver at each failpoint of `at`, and judge what readers could see.

    `at` is `POINT` or `POINT@BATCH`, or a list of them. The first driver is killed at the first failpoint, and the
    driver that continues after this crash is killed at the second one. Without `at` nothing is killed. `folder` is a
    new folder for the results. With `standby`, the drivers that continue after a crash start before the run, which
    makes the recovery faster. The other options are those of `labkit run`.

    A run with one crash takes about 20 seconds. `tell` is called with every event of the run; by default a notebook
    shows one changing line, and a terminal prints lines. Raises a `LabError` if the options do not fit each other or
    the run failed, and `TypeError` for an unknown option.
    """
    run = prepare(plan(crashes=at, **options), folder)
    with watched(tell, aloud, crashes=len(run.scenario.crashes)) as (observer, heartbeat):
        return finish(run, observer, setup=Setup(standby=standby, warm=warm_drivers()), heartbeat=heartbeat)


@takes('lab.crash_each({"append": {"at": "sink.mid_write", "sink": "append"}})')
def crash_each(
    cases: Mapping[str, Mapping[str, Any]], *, folder: Path | None = None, tell: Tell | None = None
) -> dict[str, Outcome]:
    """Execute several runs in shared Spark drivers, faster than one by one, and return a dict from name to outcome.

    `cases` maps a name of your choice to the arguments of `crash` for this run. `folder` is a new folder for the
    results, and `tell` is called with every event. Raises the error of the first run that failed.
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
    """Execute a prepared run with all its crashes, judge what readers could see, and return the outcome.

    The run fails if a driver reports nothing for `patience` seconds. `heartbeat` is called several times a second.
    Raises the error of the run, or of `heartbeat`.
    """
    conduct([run], run.folder.path / "scratch", tell, patience, setup, heartbeat=heartbeat)
    return conclude(run)


def run_all(runs: Sequence[Run], scratch: Path, tell: Tell = silent) -> list[Outcome | LabError]:
    """Execute prepared runs with all their crashes, judge them, and return each run's outcome or error."""
    conduct(runs, scratch, tell)
    return [_concluded_or_error(run) for run in runs]


def _concluded_or_error(run: Run) -> Outcome | LabError:
    try:
        return conclude(run)
    except LabError as error:
        return error
