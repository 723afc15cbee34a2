"""One run: its scenario, its folder, the evidence of its crashes, and what an outside reader could have seen.

What could have been seen is read from the store itself when everything is dead, or at the end. The run's history goes
to `labkit.core.judge`; this module must not judge, and must not start or kill anything.
"""

import hashlib
import json
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from labkit import __version__
from labkit.core.errors import InvalidInput, LabError
from labkit.core.failpoints import Crash, Strategy
from labkit.core.judge import Verdict, judge
from labkit.core.records import Epoch, History, Observation, Reading
from labkit.host import durable
from labkit.host.logs import read_log
from labkit.runs.faults import arrange, check_between
from labkit.runs.kafka_source import check_source, drop_source, feed, progress
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario
from labkit.sinks import SINKS
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.options import Job, Keep
from labkit.spark.reach import Armed, Then
from labkit.stores import open_store
from labkit.stores.contract import Elsewhere

_STAMP = re.compile(r"^\d{8}T\d{6}-")


@dataclass(eq=False)
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
    keep_store: bool = False
    """Whether rows in a server stay there after the verdict."""
    released: bool = False
    """Whether they were dropped, so that the run's own history is all that is left of them."""
    in_doubt: list[Observation] = field(default_factory=list)
    port: int | None = None
    """Of the server that feeds this run, where its source is a socket."""

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
        then = Then(self.scenario.victim.value)
        armed = (
            crash
            and Armed(crash, self.folder.reached(self.drivers + 1), then).to_json()
        )
        plain = {
            "name": self.name,
            "folder": str(self.folder.path),
            "armed": armed,
            "driver": self.drivers + 1,
        }
        portion = self.portions()[len(self.crashes)] if self.port else []
        socket = self.port and {"port": self.port, "lines": len(portion)}
        return {**plain, "scenario": self.scenario.to_json(), "socket": socket}

    def waits_for_lines(self) -> bool:
        """Whether a socket may send now: to the first driver after its empty first batch, to later ones at once.

        A later driver that finds no line when it plans its first new batch plans one that ends before it begins, and
        Spark then refuses to go on ("Offsets committed out of order").
        """
        return self.drivers > 1 or 0 in Checkpoint(self.folder.checkpoint).commit_log()

    def portions(self) -> list[list[str]]:
        """What a socket sends to each driver: so many lines to those that will be killed, the rest to the last."""
        lines = [
            json.dumps({"offset": n, "word": word})
            for n, word in enumerate(read_log(self.scenario.input))
        ]
        size, crashes = self.scenario.records_per_batch, len(self.scenario.crashes)
        return [lines[size * n : size * (n + 1)] for n in range(crashes)] + [
            lines[size * crashes :]
        ]


def prepare(scenario: Scenario, folder: Path) -> Run:
    """Makes the run's folder. Raises `InvalidInput` when it is there already or cannot be written.

    Raises what `Elsewhere.check` raises where the store is a server that cannot carry the run.
    """
    run = RunFolder(folder)
    check_store(scenario, run)
    check_source(scenario)
    try:
        folder.mkdir(parents=True)
        durable.replace(
            run.config,
            json.dumps(
                {"scenario": scenario.to_json(), "versions": versions()}, indent=2
            ),
        )
    except FileExistsError:
        raise InvalidInput(
            f"{folder}: this folder is there already; name a new one with --out, or --resume it."
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"{folder}: cannot be written ({error.strerror}); name another folder with --out."
        ) from None
    arrange(scenario, run.store(scenario.store))
    feed(scenario, run)
    return Run(scenario, run)


def check_store(scenario: Scenario, folder: RunFolder) -> None:
    """Asks a store that is a server whether it is there and can do what the run needs."""
    check_between(scenario)
    with closing(open_store(scenario.store, folder.store(scenario.store))) as store:
        if isinstance(store, Elsewhere):
            store.check(SINKS[scenario.strategy].capability)


def release(run: Run) -> None:
    """Drops what a judged run left in a server, unless it is to be kept; its history is in the run's folder."""
    if run.keep_store:
        return
    with closing(
        open_store(run.scenario.store, run.folder.store(run.scenario.store))
    ) as store:
        if isinstance(store, Elsewhere):
            run.in_doubt = hidden(run)
            store.destroy()
            run.released = True
    drop_source(run.scenario, run.folder)


def resume(folder: Path) -> Run:
    """A run whose runner was stopped, ready to go on with its next driver. Raises `InvalidInput`."""
    paths = RunFolder(folder)
    if paths.verdict.exists():
        raise InvalidInput(
            f"{folder}: this run is finished; its verdict is in {paths.verdict.name}."
        )
    try:
        scenario = Scenario.from_json(
            json.loads(paths.config.read_text(encoding="utf-8"))["scenario"]
        )
    except FileNotFoundError:
        raise InvalidInput(
            f"{folder}: no run to resume (there is no {paths.config.name})."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{paths.config}: damaged ({error}); start the run anew."
        ) from None
    if scenario.job is Job.SOCKET:
        raise InvalidInput(
            f"{folder}: what was sent to a socket cannot be sent again; start the run anew."
        )
    run = Run(scenario, paths)
    run.drivers = max(
        len(list(folder.glob("driver-*.log"))),
        Checkpoint(paths.checkpoint).incarnation(),
    )
    if paths.evidence.exists():
        evidence = _evidence(paths)
        run.crashes, run.readings = (
            evidence["crashes"],
            [tuple(pair) for pair in evidence["readings"]],
        )
    put_aside(run)
    return run


def put_aside(run: Run) -> None:
    """Takes the checkpoint away after a crash, where the scenario says so; again, if a stopped runner did not."""
    aside = run.folder.put_aside(len(run.crashes))
    if run.scenario.checkpoint is Keep.DELETED and run.crashes and not aside.exists():
        run.folder.checkpoint.rename(aside)


def _evidence(paths: RunFolder) -> dict[str, Any]:
    try:
        evidence: dict[str, Any] = json.loads(
            paths.evidence.read_text(encoding="utf-8")
        )
        evidence["crashes"], evidence["readings"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{paths.evidence}: damaged ({error}); start the run anew."
        ) from None
    return evidence


def versions() -> dict[str, str]:
    """What a run depends on."""
    return {
        "labkit": __version__,
        "pyspark": version("pyspark"),
        "python": platform.python_version(),
    }


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
        content["end"] = {
            "offset_log": checkpoint.offset_log(),
            "commit_log": checkpoint.commit_log(),
        }
        content["end"]["files"] = checkpoint.files()
        if run.scenario.job is Job.KAFKA and not run.released:
            content["end"]["progress"] = progress(run.folder)
    durable.replace(run.folder.evidence, json.dumps(content, indent=2))


def observations(run: Run) -> Iterator[Observation]:
    """What an outside reader could have seen so far, read from the store itself."""
    if run.released:
        yield from (event for event in _told(run) if isinstance(event, Observation))
        return
    with closing(
        open_store(run.scenario.store, run.folder.store(run.scenario.store))
    ) as store:
        yield from run.scenario.count.numbered(store.history())


def _told(run: Run) -> Iterator[Observation | Reading]:
    """The history that was written down when the run was judged."""
    with run.folder.history.open(encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            yield (
                Reading(event["reading"])
                if "reading" in event
                else Observation(**event)
            )


def hidden(run: Run) -> list[Observation]:
    """Rows that are still in transactions of nobody."""
    if run.released:
        return run.in_doubt
    with closing(
        open_store(run.scenario.store, run.folder.store(run.scenario.store))
    ) as store:
        return list(run.scenario.count.numbered(store.hidden()))


def history(run: Run) -> History:
    """The run's history, with the moments at which the outside reader really looked."""
    return History(
        events=_with_readings(run),
        keyed=run.scenario.strategy is Strategy.IDEMPOTENT,
        epochs=_epochs(run),
        hidden=hidden(run),
    )


def _epochs(run: Run) -> Sequence[Epoch]:
    """The planned batches: none where a deleted checkpoint leaves two plans, or where offsets are no line numbers."""
    if run.scenario.checkpoint is Keep.DELETED or run.scenario.job in (
        Job.SOCKET,
        Job.KAFKA,
    ):
        return ()
    return run.scenario.count.epochs(Checkpoint(run.folder.checkpoint).epochs())


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
    run.verdict = judge(run.scenario.count.expected(), history(run))
    if len(run.verdict.final) > MOST_KEYS:
        durable.replace(run.folder.final, _final(run.verdict))
    durable.replace(run.folder.verdict, json.dumps(result(run), indent=2))
    return run.verdict


MOST_KEYS = 1_000
"""Keys in a verdict; the values of more are in a file of their own."""


def _final(verdict: Verdict) -> bytes:
    """Sorted, without spaces, in UTF-8: whoever counts for himself can compare the digest."""
    return json.dumps(
        dict(verdict.final.items()), ensure_ascii=False, separators=(",", ":")
    ).encode()


def _named(run: Run, verdict: Verdict) -> dict[str, Any]:
    """Where the values of many keys are; nothing for few."""
    if len(verdict.final) <= MOST_KEYS:
        return {}
    digest = hashlib.sha256(_final(verdict)).hexdigest()
    return {
        "final": None,
        "final_file": {
            "path": str(run.folder.final),
            "keys": len(verdict.final),
            "sha256": digest,
        },
    }


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
        **_named(run, run.verdict),
        "crash": crash and {name: crash[name] for name in shown},
        "crashes": [{name: crash[name] for name in shown} for crash in run.crashes],
        "in_doubt_rows": len(hidden(run)),
        "seconds": times,
        "note": run.scenario.note,
        "folder": str(run.folder.path),
        "command": run.scenario.command(),
    }
