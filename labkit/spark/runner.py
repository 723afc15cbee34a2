"""Runs scenarios on real Spark: start, crash, restart, evidence; many side by side where the machine allows it.

Several queries share a driver: each parks at its own failpoint, and one kill ends them all. A query's next driver
is always a new process. What an outside reader could have seen is read when everything is dead, or at the end.
This module must not judge (that is `labkit.judge`) and must not kill (that is the supervisor).
"""

import contextlib
import json
import os
import platform
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import psutil

from labkit import __version__
from labkit.errors import InvalidInput, JobFailed, LabError, ServiceUnavailable
from labkit.failpoints import Crash, FailPoint, Strategy
from labkit.files import read_log
from labkit.judge import Verdict, judge
from labkit.records import History, Observation, Reading
from labkit.scenario import PARTITIONS, Scenario, expected_records
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.drive import Drive
from labkit.spark.layout import RunFolder
from labkit.spark.reach import Armed
from labkit.stores import durable, open_store

ACTIVE = 2
"""Queries that one driver works on at a time; parked ones use no processor."""

PARKED = 24
"""Queries that may wait at their failpoints in one driver."""

DRIVER_BYTES = 2_500_000_000
"""Memory that one driver with its workers and parked queries is counted with."""

FULL = 1_000_000
"""Bytes of free space below which a failure is put down to the disk."""

PATIENCE = 240.0
"""Seconds without any news from a driver after which a run is given up."""

_STAMP = re.compile(r"^\d{8}T\d{6}-")

Tell = Callable[[str, dict[str, Any]], None]
"""Told what happens (`begun`, `parked`, `killed`, `ended`, `failed`...), with details; for progress only."""


@dataclass
class Run:
    """One scenario under way in its folder."""

    scenario: Scenario
    folder: RunFolder
    drivers: int = 0
    crashes: list[dict[str, Any]] = field(default_factory=list)
    readings: list[tuple[str, int]] = field(default_factory=list)
    error: LabError | None = None
    ended: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    verdict: Verdict | None = None

    @property
    def name(self) -> str:
        """Distinct among the runs that are conducted together."""
        return _STAMP.sub("", self.folder.path.name)

    @property
    def next_crash(self) -> Crash | None:
        """Where the next driver is to die; None for the driver that runs to the end."""
        remaining = self.scenario.crashes[len(self.crashes) :]
        return remaining[0] if remaining else None

    def specification(self) -> dict[str, Any]:
        """What the next driver must know."""
        crash = self.next_crash
        armed = crash and Armed(crash, self.folder.reached(self.drivers + 1)).to_json()
        plain = {"name": self.name, "folder": str(self.folder.path), "armed": armed}
        return {**plain, "scenario": self.scenario.to_json()}


def prepare(scenario: Scenario, folder: Path) -> Run:
    """Makes the run's folder. Raises `InvalidInput` when it is there already or cannot be written."""
    run = RunFolder(folder)
    try:
        folder.mkdir(parents=True)
        durable.replace(run.config, json.dumps({"scenario": scenario.to_json(), "versions": versions()}, indent=2))
    except FileExistsError:
        raise InvalidInput(
            f"{folder}: this folder is there already; name a new one with --out, or --resume it."
        ) from None
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be written ({error.strerror}); name another folder with --out.") from None
    return Run(scenario, run)


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
    run = Run(scenario, paths)
    run.drivers = len(list(folder.glob("driver-*.log")))
    if paths.evidence.exists():
        evidence = _evidence(paths)
        run.crashes, run.readings = evidence["crashes"], [tuple(pair) for pair in evidence["readings"]]
    return run


def _evidence(paths: RunFolder) -> dict[str, Any]:
    try:
        evidence: dict[str, Any] = json.loads(paths.evidence.read_text(encoding="utf-8"))
        evidence["crashes"], evidence["readings"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{paths.evidence}: damaged ({error}); start the run anew.") from None
    return evidence


def versions() -> dict[str, str]:
    """What a run depends on."""
    return {"labkit": __version__, "pyspark": version("pyspark"), "python": platform.python_version()}


def conduct(runs: Sequence[Run], scratch: Path, tell: Tell, patience: float = PATIENCE) -> None:
    """Drives every run to its end. A run that fails keeps its error; the others go on.

    `scratch` is a folder for the drivers' temporary files, gone afterwards.
    """
    side_by_side = min(_drivers_allowed(), -(-len(runs) // ACTIVE))
    fleet = Fleet(scratch, tell, patience)
    try:
        with ThreadPoolExecutor(side_by_side) as pool:
            try:
                _fly(fleet, pool, list(runs), side_by_side)
            except BaseException:
                fleet.let_go()
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fly(fleet: "Fleet", pool: ThreadPoolExecutor, ready: list[Run], side_by_side: int) -> None:
    flying: dict[Future[None], list[Run]] = {}
    while ready or flying:
        share = -(-len(ready) // side_by_side)
        while ready and len(flying) < side_by_side:
            load = list(islice(_load(ready), max(share, 1)))
            ready = [run for run in ready if run not in load]
            flying[pool.submit(fleet.fly, load)] = load
        for future in wait(flying, return_when=FIRST_COMPLETED).done:
            load = flying.pop(future)
            future.result()
            ready = [run for run in load if not run.ended and run.error is None] + ready


def _load(ready: Sequence[Run]) -> Iterator[Run]:
    """Runs for one driver: those to be recovered first, then new ones until enough of them would be parked."""
    parked = 0
    for run in sorted(ready, key=lambda run: -run.drivers):
        parked += run.next_crash is not None
        if parked > PARKED:
            return
        yield run


def _drivers_allowed() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores // 2, psutil.virtual_memory().available // DRIVER_BYTES))


class Fleet:
    """The drivers that are under way."""

    def __init__(self, scratch: Path, tell: Tell, patience: float) -> None:
        self._scratch, self._tell, self._patience = scratch, tell, patience
        self._drives: list[Drive] = []
        self._lock = threading.Lock()
        self._count = 0
        self._closed = False

    def let_go(self) -> None:
        """Ends every driver."""
        with self._lock:
            self._closed = True
            for drive in self._drives:
                drive.let_go()

    def _add(self, drive: Drive) -> None:
        with self._lock:
            self._drives.append(drive)
            if self._closed:
                drive.let_go()

    def fly(self, load: Sequence[Run]) -> None:
        """One driver for these runs, from its start to the proof of its end."""
        with self._lock:
            self._count += 1
            base = self._scratch / f"driver-{self._count}"
        spec: dict[str, Any] = {
            "master": f"local[{(PARTITIONS + 1) * (len(load) + 1)}]",
            "active": ACTIVE,
            "scratch": str(base),
            "log": str(base) + ".log",
            "cells": [run.specification() for run in load],
        }
        flight = Flight(load, self._tell)
        self._tell("driver", {"cells": [run.name for run in load]})
        try:
            with Drive(spec, self._patience) as drive:
                self._add(drive)
                for event in drive.events():
                    flight.note(event)
        except LabError as error:
            flight.give_up(error)
        finally:
            flight.keep_log(Path(spec["log"]))
        flight.conclude()


class Flight:
    """What one driver did to the runs that it carried."""

    def __init__(self, load: Sequence[Run], tell: Tell) -> None:
        self._runs = {run.name: run for run in load}
        self._begun: dict[str, float] = {}
        self._parked: list[Run] = []
        self._proof: dict[str, Any] = {}
        self._tell = tell
        for run in load:
            run.drivers += 1

    def note(self, event: dict[str, Any]) -> None:
        """Takes one event of the supervisor in."""
        kind, now = event["event"], time.monotonic()
        run = self._runs.get(event.get("cell") or "")
        if kind == "begun" and run:
            self._begun[run.name] = now
        elif kind == "parked" and run:
            self._parked.append(run)
            run.seconds[f"to_crash_{run.drivers}"] = now - self._begun[run.name]
        elif kind == "recovered" and run and run.crashes:
            run.crashes[-1]["recovery"] = event["steps"]
        elif kind == "ended" and run:
            run.ended = True
            run.seconds["to_recovered" if run.crashes else "to_end"] = now - self._begun[run.name]
        elif kind == "failed":
            self._fail(event, [run] if run else list(self._runs.values()))
        elif kind in ("killed", "died", "unwanted"):
            self._proof = event
        self._tell(kind, event)

    def _fail(self, event: dict[str, Any], runs: Sequence[Run]) -> None:
        kinds: dict[int, type[LabError]] = {64: InvalidInput, 69: ServiceUnavailable}
        for run in runs:
            run.error = kinds.get(event["code"], JobFailed)(event["because"])

    def give_up(self, error: LabError) -> None:
        """No run of this driver can be trusted."""
        for run in self._runs.values():
            run.error = run.error or error
        self._parked.clear()

    def keep_log(self, log: Path) -> None:
        """Gives every run its copy of what the driver printed."""
        for run in self._runs.values():
            if log.exists():
                with contextlib.suppress(OSError):  # a full disk has its own sentence
                    shutil.copyfile(log, run.folder.driver_log(run.drivers))

    def conclude(self) -> None:
        """Takes the evidence of every crash, now that nothing of the driver is left."""
        for run in self._runs.values():
            try:
                self._conclude(run)
            except LabError as error:
                run.error = error

    def _conclude(self, run: Run) -> None:
        if run.error is not None:
            return
        if run in self._parked:
            note_crash(run, self._proof)
        elif not run.ended:
            raise _ended_early(run)
        elif run.next_crash is not None:
            run.ended = False
            raise JobFailed(
                f"the failpoint {run.next_crash} was never reached: the run ended without a crash, and proves nothing."
            )


def _ended_early(run: Run) -> LabError:
    if shutil.disk_usage(run.folder.path).free < FULL:
        return InvalidInput(f"{run.folder.path}: the disk is full; make room or name another folder with --out.")
    return JobFailed(f"the driver ended by itself; {run.folder.driver_log(run.drivers)} says why.")


def note_crash(run: Run, proof: dict[str, Any]) -> None:
    """Checks the proof of one crash and keeps it. Raises `JobFailed` when anything in it does not hold."""
    crash = run.next_crash
    assert crash is not None
    reached = json.loads(run.folder.reached(run.drivers).read_text(encoding="utf-8"))
    if proof.get("signal") != 9 or proof.get("left"):
        raise JobFailed(f"the driver at {crash} did not die by SIGKILL alone (proof: {proof}); the run proves nothing.")
    if reached["point"] != crash.point.value or reached["session"] != proof["session"]:
        raise JobFailed(f"the evidence {run.folder.reached(run.drivers)} is not of {crash}; the run proves nothing.")
    checkpoint = Checkpoint(run.folder.checkpoint)
    _check_logs(crash, checkpoint)
    run.crashes.append(
        {
            "point": crash.point.value,
            "batch": crash.batch,
            "signal": proof["signal"],
            "offset_log": checkpoint.offset_log(),
            "commit_log": checkpoint.commit_log(),
            "files": checkpoint.files(),
            "reached_by": reached["pid"],
            "session": proof["session"],
            "killed": proof["killed"],
        }
    )
    run.readings.append((f"crash {len(run.crashes)}", sum(1 for _ in observations(run))))
    keep_evidence(run)


def _check_logs(crash: Crash, checkpoint: Checkpoint) -> None:
    """The engine's own logs must say what the point says."""
    if crash.point.in_recovery:
        return
    planned, finished = crash.batch in checkpoint.offset_log(), crash.batch in checkpoint.commit_log()
    if not planned:
        raise JobFailed(f"{crash} was reached, and yet offsets/{crash.batch} is missing; the run proves nothing.")
    if crash.point is FailPoint.AFTER_COMMIT_LOG and not finished:
        raise JobFailed(f"{crash} was reached, and yet commits/{crash.batch} is missing; the run proves nothing.")
    before = (FailPoint.AFTER_OFFSET_LOG, FailPoint.AFTER_PRE_COMMIT, FailPoint.MID_WRITE, FailPoint.AFTER_HANDLES)
    if crash.point in before and finished:
        raise JobFailed(f"{crash} was reached, and yet commits/{crash.batch} is there; the run proves nothing.")


def keep_evidence(run: Run) -> None:
    """Writes what is known so far, so that a stopped run can be resumed."""
    content: dict[str, Any] = {
        "crashes": run.crashes,
        "readings": run.readings,
        "ended": run.ended,
        "seconds": run.seconds,
    }
    if run.ended:
        checkpoint = Checkpoint(run.folder.checkpoint)
        content["end"] = {"offset_log": checkpoint.offset_log(), "commit_log": checkpoint.commit_log()}
        content["end"]["files"] = checkpoint.files()
    durable.replace(run.folder.evidence, json.dumps(content, indent=2))


def observations(run: Run) -> Iterator[Observation]:
    """What an outside reader could have seen so far, read from the store itself."""
    store = open_store(run.scenario.store, run.folder.store(run.scenario.store))
    try:
        yield from store.history()
    finally:
        store.close()


def hidden(run: Run) -> list[Observation]:
    """Rows that are still in transactions of nobody."""
    store = open_store(run.scenario.store, run.folder.store(run.scenario.store))
    try:
        return list(store.hidden())
    finally:
        store.close()


def history(run: Run) -> History:
    """The run's history, with the moments at which the outside reader really looked."""
    return History(
        events=_with_readings(run),
        keyed=run.scenario.strategy is Strategy.IDEMPOTENT,
        epochs=Checkpoint(run.folder.checkpoint).epochs(),
        hidden=hidden(run),
    )


def _with_readings(run: Run) -> Iterator[Observation | Reading]:
    waiting = list(run.readings)
    for position, observation in enumerate(observations(run)):
        while waiting and waiting[0][1] == position:
            yield Reading(waiting.pop(0)[0])
        yield observation
    for moment, _ in waiting:
        yield Reading(moment)
    yield Reading("end")


def conclude(run: Run) -> Verdict:
    """Judges a run that has ended and writes its history, evidence and verdict."""
    with run.folder.history.open("w", encoding="utf-8") as file:
        for event in _with_readings(run):
            file.write(json.dumps(_line(event)) + "\n")
    keep_evidence(run)
    run.verdict = judge(expected_records(read_log(run.scenario.input)), history(run))
    durable.replace(run.folder.verdict, json.dumps(result(run), indent=2))
    return run.verdict


def _line(event: Observation | Reading) -> dict[str, Any]:
    return {"reading": event.moment} if isinstance(event, Reading) else event._asdict()


def result(run: Run) -> dict[str, Any]:
    """The run as `--json` prints it."""
    assert run.verdict is not None
    crash = run.crashes[0] if run.crashes else None
    shown = ("point", "batch", "signal", "offset_log", "commit_log")
    times = {name: round(seconds, 3) for name, seconds in run.seconds.items()}
    times["to_crash"] = times.get("to_crash_1", 0.0)
    times.setdefault("to_recovered", 0.0)
    return {
        "scenario": run.scenario.to_json(),
        **run.verdict.to_json(),
        "crash": crash and {name: crash[name] for name in shown},
        "crashes": [{name: crash[name] for name in shown} for crash in run.crashes],
        "seconds": times,
        "folder": str(run.folder.path),
        "command": run.scenario.command(),
    }
