"""Prepare a run: check its scenario and the services it needs, create its folder, and fill its input topic.

`resume` continues a run whose process was stopped.
"""

import json
import platform
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from labkit import __version__
from labkit.core.errors import InvalidInput
from labkit.host import durable
from labkit.host.java import java_for_spark
from labkit.host.logs import read_log
from labkit.runs.faults import check_between, prepare_for_faults
from labkit.runs.kafka_source import check_source, feed
from labkit.runs.layout import RunFolder
from labkit.runs.run import Run
from labkit.runs.scenario import Scenario, check_input
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.options import Job
from labkit.spark.outside import Outside
from labkit.stores.contract import ServerBacked


def prepare(scenario: Scenario, folder: Path | None = None) -> Run:
    """Check all that a run needs, create its folder, and return the run, ready for its first driver.

    Raises `InvalidInput` or `ServiceUnavailable` if a check fails.
    """
    [run] = prepare_all({fresh_folder(scenario.name) if folder is None else folder.absolute(): scenario})
    return run


def prepare_all(scenarios: Mapping[Path, Scenario]) -> list[Run]:
    """Prepare several runs as `prepare` does; `scenarios` maps each run's folder to its scenario.

    If a check fails, no folder has been created.
    """
    runs = [Run(scenario, RunFolder(folder)) for folder, scenario in scenarios.items()]
    for run in runs:
        check_input(run.scenario)
    java_for_spark()
    for run in runs:
        check_services(run)
    for run in runs:
        _make(run)
    return runs


def check_services(run: Run) -> None:
    """Check that the servers of the run's store and input are usable, without changing anything in them.

    Raises a `LabError` if a server is not usable.
    """
    check_between(run.scenario)
    with closing(run.open_store()) as store:
        if isinstance(store, ServerBacked):
            store.check(run.scenario.strategy.facts.needs)
    check_source(run.scenario)


def _make(run: Run) -> None:
    scenario, folder = run.scenario, run.folder
    versions = {"labkit": __version__, "pyspark": version("pyspark"), "python": platform.python_version()}
    try:
        # `mkdir` itself fails if the folder exists; another run could create it between a check and `mkdir`.
        folder.path.mkdir(parents=True)
        durable.replace(folder.config, json.dumps({"scenario": scenario.to_json(), "versions": versions}, indent=2))
    except FileExistsError:
        raise InvalidInput(
            f"{folder.path}: this folder exists already; name a new one with --out, or continue its run with --resume."
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"{folder.path}: the folder cannot be written ({error.strerror}); name another one with --out."
        ) from None
    prepare_for_faults(scenario, folder.store(scenario.store))
    feed(scenario, folder)
    if scenario.job is Job.SHOP:
        Outside(folder.outside).open(read_log(scenario.input))


def resume(folder: Path) -> Run:
    """Return the unfinished run in `folder`, ready for its next driver.

    Raises `InvalidInput` if the run is finished or damaged, or reads a socket, which cannot send its lines again.
    """
    paths = RunFolder(folder.absolute())
    if paths.verdict.exists():
        raise InvalidInput(f"{paths.path}: this run is finished; its verdict is in {paths.verdict.name}.")
    try:
        scenario = Scenario.from_json(json.loads(paths.config.read_text(encoding="utf-8"))["scenario"])
    except FileNotFoundError:
        raise InvalidInput(
            f"{paths.path}: there is no run to resume, because the file {paths.config.name} is missing; name the "
            "folder of an interrupted run."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{paths.config}: this file is damaged ({error}); start the run again.") from None
    if scenario.job is Job.SOCKET:
        raise InvalidInput(
            f"{paths.path}: a run with --job socket cannot be resumed, because a socket cannot send its lines "
            "again; start the run again."
        )
    # The runner may have died before or after the new driver created its log, so the larger count is used: it never
    # repeats a number.
    drivers = max(len(list(paths.path.glob("driver-*.log"))), Checkpoint(paths.checkpoint).incarnation())
    run = Run(scenario, paths, drivers)
    run.read_evidence()
    run.put_aside()
    return run


def fresh_folder(name: str) -> Path:
    """Return a path `runs/<utc time>-<name>` in the working directory that does not exist yet."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    base = Path("runs").absolute() / f"{stamp}-{name}"
    folder, number = base, 1
    # Two runs may begin in the same second.
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}-{number}")
    return folder
