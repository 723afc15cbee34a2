"""One run that is under way: its scenario, its folder, and the evidence of its crashes so far.

What could have been seen is read from the store itself while everything is dead. This module must not judge, and must
not start or kill anything.
"""

import json
import platform
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from labkit import __version__
from labkit.core.errors import InvalidInput, LabError
from labkit.core.exposure import Span
from labkit.core.failpoints import Crash
from labkit.core.records import Observation
from labkit.host import durable
from labkit.host.logs import read_log
from labkit.runs import moments
from labkit.runs.driver_task import QueryTask, Socket
from labkit.runs.faults import check_between, prepare_for_faults
from labkit.runs.kafka_source import check_source, feed, progress
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario
from labkit.runs.socket_source import between_plans
from labkit.sinks import SINKS
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.options import CheckpointFate, Job
from labkit.spark.outside import Outside
from labkit.spark.reach import Armed, Reaction
from labkit.stores import open_store
from labkit.stores.contract import ServerBacked, Store

_STAMP = re.compile(r"^\d{8}T\d{6}-")


@dataclass(eq=False)
class Run:
    """One scenario under way in its folder. What is known of it in the end is its `RunRecord`."""

    scenario: Scenario
    folder: RunFolder
    drivers: int = 0
    crashes: list[dict[str, Any]] = field(default_factory=list)
    readings: list[tuple[str, int]] = field(default_factory=list)
    ready: dict[int, Span] | None = field(default_factory=dict)
    """Of records whose rows were pre-committed when a crash was looked at, when that was, by offset; None: not known.
    """
    started: dict[int, float] = field(default_factory=dict)
    """When the query of each driver started, after its recovery, in seconds since the epoch; by the driver's number."""
    error: LabError | None = None
    ended: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    keep_store: bool = False
    """Whether rows in a server stay there after the verdict."""
    port: int | None = None
    """Of the server that feeds this run, where its source is a socket."""

    @property
    def name(self) -> str:
        """Distinct among the runs that are conducted together."""
        return _STAMP.sub("", self.folder.path.name)

    @property
    def next_crash(self) -> Crash | None:
        """The crash that the next driver is to die of; None for the driver that runs to the end."""
        remaining = self.scenario.crashes[len(self.crashes) :]
        return remaining[0] if remaining else None

    def query_task(self) -> QueryTask:
        """What the next driver of this run is told."""
        driver = self.drivers + 1
        armed = None
        if self.next_crash is not None:
            reaction = Reaction(self.scenario.victim.value)
            armed = Armed(self.next_crash, self.folder.reached(driver), reaction)
        socket = None
        if self.port is not None:
            portion = self.portions()[len(self.crashes)]
            socket = Socket(self.port, len(portion))
        return QueryTask(
            name=self.name,
            folder=str(self.folder.path),
            driver=driver,
            scenario=self.scenario.to_json(),
            armed=None if armed is None else armed.to_json(),
            socket=socket,
        )

    def waits_for_lines(self) -> bool:
        """Whether a socket may send now: to the first driver after its empty first batch, to later ones at once.

        The first driver gets its lines between two plans, so that one batch has all of them. A later driver that finds
        no line when it plans its first new batch plans one that ends before it begins, and Spark then refuses to go on
        ("Offsets committed out of order").
        """
        first_is_over = 0 in Checkpoint(self.folder.checkpoint).commit_log()
        return self.drivers > 1 or (first_is_over and between_plans())

    def portions(self) -> list[list[str]]:
        """What a socket sends to each driver: so many lines to those that will be killed, the rest to the last."""
        lines = [json.dumps({"offset": n, "word": word}) for n, word in enumerate(read_log(self.scenario.input))]
        size, crashes = self.scenario.records_per_batch, len(self.scenario.crashes)
        return [lines[size * n : size * (n + 1)] for n in range(crashes)] + [lines[size * crashes :]]


def prepare(scenario: Scenario, folder: Path) -> Run:
    """Makes the run's folder. Raises `InvalidInput` when it is there already or cannot be written.

    Raises what `ServerBacked.check` raises where the store is a server that cannot carry the run.
    """
    run = RunFolder(folder)
    # Everything that can refuse comes before the folder is made: a refused run leaves
    # nothing behind.
    check_store(scenario, run)
    check_source(scenario)
    try:
        # `mkdir` itself says whether the folder was there; a look before it could be
        # overtaken by another run.
        folder.mkdir(parents=True)
        durable.replace(run.config, json.dumps({"scenario": scenario.to_json(), "versions": versions()}, indent=2))
    except FileExistsError:
        raise InvalidInput(
            f"{folder}: this folder is there already; name a new one with --out, or --resume it."
        ) from None
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be written ({error.strerror}); name another folder with --out.") from None
    prepare_for_faults(scenario, run.store(scenario.store))
    feed(scenario, run)
    if scenario.job is Job.SHOP:
        Outside(run.outside).open(read_log(scenario.input))
    return Run(scenario, run)


def check_store(scenario: Scenario, folder: RunFolder) -> None:
    """Asks a store that is a server whether it is there and can do what the run needs."""
    check_between(scenario)
    with closing(open_store(scenario.store, folder.store(scenario.store))) as store:
        if isinstance(store, ServerBacked):
            store.check(SINKS[scenario.strategy].capability)


def resume(folder: Path) -> Run:
    """A run whose runner was stopped, ready to go on with its next driver. Raises `InvalidInput`."""
    paths = RunFolder(folder)
    if paths.verdict.exists():
        raise InvalidInput(f"{folder}: this run is finished; its verdict is in {paths.verdict.name}.")
    try:
        scenario = Scenario.from_json(json.loads(paths.config.read_text(encoding="utf-8"))["scenario"])
    except FileNotFoundError:
        raise InvalidInput(f"{folder}: no run to resume (there is no {paths.config.name}).") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{paths.config}: damaged ({error}); start the run anew.") from None
    if scenario.job is Job.SOCKET:
        raise InvalidInput(f"{folder}: what was sent to a socket cannot be sent again; start the run anew.")
    run = Run(scenario, paths)
    # The runner may have died between the start of a driver and its log, or behind it:
    # the larger count never gives a number twice.
    run.drivers = max(len(list(folder.glob("driver-*.log"))), Checkpoint(paths.checkpoint).incarnation())
    if paths.evidence.exists():
        evidence = _evidence(paths)
        run.crashes, run.readings = (evidence["crashes"], [tuple(pair) for pair in evidence["readings"]])
        # Not in the evidence of a run that an earlier version has begun.
        ready = evidence.get("ready", None if run.crashes else {})
        run.ready = ready and {int(offset): Span(*span) for offset, span in ready.items()}
        started = evidence.get("started", {}).items()
        run.started = {int(driver): at for driver, at in started}
    put_aside(run)
    return run


def put_aside(run: Run) -> None:
    """Moves the checkpoint aside after a crash, where the scenario says so and a stopped runner has not done it yet."""
    aside = run.folder.put_aside(len(run.crashes))
    if run.scenario.checkpoint is CheckpointFate.DELETED and run.crashes and not aside.exists():
        run.folder.checkpoint.rename(aside)


def _evidence(paths: RunFolder) -> dict[str, Any]:
    try:
        evidence: dict[str, Any] = json.loads(paths.evidence.read_text(encoding="utf-8"))
        # Looked up here, so that a file with a part missing is refused as damaged and
        # not later by its caller.
        evidence["crashes"], evidence["readings"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{paths.evidence}: damaged ({error}); start the run anew.") from None
    return evidence


def versions() -> dict[str, str]:
    """The versions of the lab, of PySpark and of Python, which a run depends on."""
    return {"labkit": __version__, "pyspark": version("pyspark"), "python": platform.python_version()}


def keep_evidence(run: Run) -> None:
    """Writes what is known so far, so that a stopped run can be resumed."""
    content: dict[str, Any] = {
        "crashes": run.crashes,
        "readings": run.readings,
        "ready": run.ready,
        "started": run.started,
        "ended": run.ended,
        "seconds": run.seconds,
    }
    if run.ended:
        checkpoint = Checkpoint(run.folder.checkpoint)
        content["end"] = {"offset_log": checkpoint.offset_log(), "commit_log": checkpoint.commit_log()}
        content["end"]["files"] = checkpoint.files()
        if run.scenario.job is Job.KAFKA:
            content["end"]["progress"] = progress(run.folder)
    durable.replace(run.folder.evidence, json.dumps(content, indent=2))


def open_store_of(run: Run) -> Store:
    """The store that a run writes to."""
    return open_store(run.scenario.store, run.folder.store(run.scenario.store))


def observations(run: Run) -> Iterator[Observation]:
    """What an outside reader could have seen so far, read from the store itself."""
    with closing(open_store_of(run)) as store:
        yield from run.scenario.count.numbered(store.history())


def note_waiting(run: Run) -> None:
    """Notes what is pre-committed and not visible now; of a record, the first time counts."""
    with closing(open_store_of(run)) as store:
        found = moments.waiting(store, run.scenario.count.numbered)
    run.ready = {**found, **run.ready} if found is not None and run.ready is not None else None
